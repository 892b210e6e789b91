package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// doors measures a run of a tool that does nothing through the other interfaces
// of the service, against the same run through /api/v2: its create, and its
// events until the end.
func (b *bench) doors(ctx context.Context) error {
	if err := b.doorsOn(ctx, "SQLite", ""); err != nil {
		return err
	}
	return b.onPostgres(ctx, func(address string) error { return b.doorsOn(ctx, "PostgreSQL", address) })
}

func (b *bench) doorsOn(ctx context.Context, where, database string) error {
	s, err := b.serve(ctx, "doors-"+where, settings{tags: "failpoint", tools: map[string]string{"tags.yaml": tags, "noop.yaml": noop}, database: database})
	if err != nil {
		return err
	}
	defer s.stop()
	people, err := gather(ctx, s, 1)
	if err != nil {
		return err
	}
	j, err := s.job(people[0].token, "Noop", `{}`)
	if err != nil {
		return err
	}
	f, err := follow(s.creates(people, j)[0])
	if err != nil {
		return err
	}
	defer f.close()
	door, err := dial(s.address)
	if err != nil {
		return err
	}
	defer door.Close()
	t := s.with("/v1/images/generations")
	t.token = people[0].token
	t.body = `{"model":"noop"}`
	request := t.request()

	through := side{"runs through POST /v1/images/generations, one after the other (" + where + ")", one(func() error {
		var body strings.Builder
		if err := door.ask(request, &body); err != nil {
			return err
		}
		var got struct{ Data []struct{ URL string } }
		return json.Unmarshal([]byte(body.String()), &got)
	})}
	direct := side{"the same through POST /api/v2/generate and its events", one(func() error {
		_, _, err := f.run()
		return err
	})}
	if err := b.compare("runs/s", through, direct, 0.8); err != nil {
		return err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint:   s.url + "/mcp",
		HTTPClient: &http.Client{Transport: bearer{people[0].token}},
	}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	called := side{"runs through tools/call of /mcp with the official client, one after the other (" + where + ")", one(func() error {
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "noop"})
		if err == nil && result.IsError {
			err = fmt.Errorf("noop: %v", result.StructuredContent)
		}
		return err
	})}
	return b.compare("runs/s", called, direct, 0.8)
}

// bearer sends a token with each request.
type bearer struct{ token string }

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

// one does something again and again, and says how often a second.
func one(do func() error) func(time.Duration) (float64, error) {
	return func(span time.Duration) (float64, error) {
		n := 0
		start := time.Now()
		for time.Since(start) < span {
			if err := do(); err != nil {
				return 0, err
			}
			n++
		}
		return float64(n) / time.Since(start).Seconds(), nil
	}
}
