package main

import (
	"fmt"
	"os"
	"strings"

	"atelier/client"
)

// usesService decides whether "tools list" and "tools show" read a service or
// the installation on this machine:
//
//  1. --service, --profile, --token or --team: the service.
//  2. Otherwise data or database, given as a flag, variable or in a settings
//     file: the installation.
//  3. Otherwise a profile or ATELIER_TOKEN: the service.
//  4. Otherwise the installation in the default folder, if there is one.
func (f serviceFlags) usesService(p *program) bool {
	if f.Service != "" || f.Profile != "" || f.Token != "" || f.Team != "" {
		return true
	}
	for _, s := range p.sources.Settings(p.kong, p.cfg) {
		if (s.Name == "data" || s.Name == "database") && s.Source != "default" {
			return false
		}
	}
	if p.isSignedIn() {
		return true
	}
	_, err := os.Stat(p.cfg.Data)
	return err != nil // the person is told to sign in
}

// matchesWords reports whether every word of a search is in one of the texts.
func matchesWords(search string, texts ...string) bool {
	all := strings.ToLower(strings.Join(texts, "\n"))
	for _, word := range strings.Fields(strings.ToLower(search)) {
		if !strings.Contains(all, word) {
			return false
		}
	}
	return true
}

// listRemote lists the tools of a service.
func (c listCmd) listRemote(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	search := strings.Join(c.Search, " ")
	tools := []client.Tool{}
	table := [][]string{{"TOOL", "DISPLAY NAME", "PRICE", "SECONDS", "DESCRIPTION"}}
	for t, err := range service.Tools.All(p.ctx, client.ToolsListParams{}) {
		if err != nil {
			return err
		}
		texts := []string{t.Slug, t.Name, showOptional(t.Description)}
		for _, tag := range t.ToolTags {
			texts = append(texts, tag.Label)
		}
		if !matchesWords(search, texts...) {
			continue
		}
		tools = append(tools, t)
		price := "free"
		if t.PricingType != "FREE" {
			price = showCount(t.TokensPerResult)
		}
		seconds := "-"
		if t.AverageGenInSeconds != nil {
			seconds = showCount(*t.AverageGenInSeconds)
		}
		table = append(table, cleanCells([]string{safeSlug(t.Slug), t.Name, price, seconds, shortenWords(showOptional(t.Description), 44)}))
	}
	if c.JSON {
		return p.printResult(true, map[string]any{"data": tools}, "")
	}
	if len(tools) == 0 && search != "" {
		return statusError{fmt.Errorf("no tool matches %q", search), exitNotFound}
	}
	return p.printList(table)
}

// showRemote shows a tool of a service.
func (c showCmd) showRemote(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	tool, err := findTool(p.ctx, service, c.Tool)
	if err != nil {
		return err
	}
	known := catalogTool(tool)
	if c.JSON {
		return p.printResult(true, newToolRow(known), "")
	}
	_, err = fmt.Fprint(p.stdout, describeTool(known))
	return err
}
