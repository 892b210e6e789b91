package main

import (
	"io"
	"net/url"
	"strings"

	"atelier/internal/cli/mcpbridge"
)

type mcpCmd struct {
	serviceFlags
	Kits []string `help:"Kits whose tools are listed (default: what the service chooses); \"all\" lists all tools." placeholder:"KIT,…"`
}

// Run serves the Model Context Protocol on stdin and stdout, for assistants that
// start their servers as programs.
func (c mcpCmd) Run(p *program) error {
	t, err := c.findTarget(p)
	if err != nil {
		return err
	}
	service, err := p.newClient(t)
	if err != nil {
		return err
	}
	query := url.Values{}
	if t.teamID != "" {
		query.Set("team_id", t.teamID)
	}
	if len(c.Kits) > 0 {
		query.Set("kits", strings.Join(c.Kits, ","))
	}
	endpoint := service.URL() + "/mcp"
	if len(query) > 0 {
		endpoint += "?" + query.Encode()
	}
	return mcpbridge.Run(p.ctx, mcpbridge.Options{
		Endpoint:  endpoint,
		Transport: service.Transport(),
		In:        io.NopCloser(p.stdin),
		Out:       nopCloser{p.stdout},
		Version:   buildVersion(),
	})
}

// nopCloser is a writer that the program closes when it ends.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
