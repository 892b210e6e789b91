package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/catalog/openaimap"
	"atelier/internal/catalog/toolsync"
)

type toolsCmd struct {
	Lint   lintCmd   `cmd:"" settings:"tools,backends,catalog.,engines." help:"Report every problem in a folder of manifests."`
	Apply  applyCmd  `cmd:"" settings:"tools,backends,catalog.,engines.,roles,connections,blobs,s3.,retention." help:"Update the catalog from the manifests."`
	List   listCmd   `cmd:"" default:"withargs" settings:"connections" help:"List the tools of a service, or of an installation."`
	Show   showCmd   `cmd:"" settings:"connections" help:"Show the inputs, outputs and price of a tool."`
	Doctor doctorCmd `cmd:"" settings:"tools,backends,catalog.,engines.,roles,runs." help:"Check which engines can run on this machine, and what is missing."`
	Import importCmd `cmd:"" settings:"tools,backends,engines." help:"Write a manifest for a model or workflow of a model server."`
}

var errProblems = errors.New("the manifests have problems")

type lintCmd struct {
	jsonFlag
	Dir    string `arg:"" optional:"" help:"Folder with manifests (default: --tools, or the shipped ones)."`
	OpenAI bool   `name:"openai" help:"Also list the endpoints under /v1 that can call each tool, and why others cannot."`
}

func (c lintCmd) Run(p *program) error {
	p.cfg.Roles = []string{"worker"} // check as a worker would, regardless of the node's roles
	from, err := p.inspectedManifestSources(c.Dir)
	if err != nil {
		return err
	}
	for i := range from { // include tools whose engine is not available on this node
		from[i].EngineAvailability = nil
	}
	set, err := catalog.Read(from...)
	if err != nil {
		return err
	}
	problems := slices.Concat(set.Problems, set.Warnings)
	catalog.SortProblems(problems)
	own := set.LenOf(catalog.Directory)
	shipped := set.LenOf(catalog.Builtin)
	if c.JSON {
		result := map[string]any{"tools": set.Len(), "own_tools": own, "shipped_tools": shipped, "flows": flowRows(set), "problems": problemRows(problems)}
		if c.OpenAI {
			result["openai"] = openAIRows(set)
		}
		err = p.printResult(true, result, "")
	} else {
		if c.OpenAI {
			printEndpoints(p.stdout, openAIRows(set))
		}
		if len(problems) == 0 {
			printFlows(p.stdout, flowRows(set))
		}
		err = p.printProblems(problems, countTools(own, shipped, len(from) > 1)+", no problems")
	}
	return problemsAsError(err, problems)
}

// openAIRow says whether an endpoint of the OpenAI-compatible interface can call
// a tool.
type openAIRow struct {
	Tool     string `json:"tool"`
	Endpoint string `json:"endpoint"`
	Callable bool   `json:"callable"`
	Remark   string `json:"remark"` // why not, or what to know
}

// openAIRows returns a row for each tool and endpoint.
func openAIRows(set *catalog.Set) []openAIRow {
	all := []openAIRow{}
	for slug, t := range set.AllTools() {
		for _, e := range openaimap.Endpoints {
			row := openAIRow{Tool: slug, Endpoint: string(e)}
			m, err := openaimap.New(t, e)
			if err != nil {
				row.Remark = err.Error()
			} else {
				row.Callable = true
				row.Remark = strings.Join(m.Remarks(), "; ")
			}
			all = append(all, row)
		}
	}
	return all
}

// printEndpoints prints the endpoints that can call each tool, and for tools
// that none can call, the reasons.
func printEndpoints(w io.Writer, all []openAIRow) {
	for rows := range slices.Chunk(all, len(openaimap.Endpoints)) {
		var callable, reasons []string
		for _, row := range rows {
			text := row.Endpoint
			if row.Remark != "" {
				text += " (" + row.Remark + ")"
			}
			if row.Callable {
				callable = append(callable, text)
			} else {
				reasons = append(reasons, text)
			}
		}
		if len(callable) == 0 {
			fmt.Fprintf(w, "%s: no endpoint: %s\n", rows[0].Tool, strings.Join(reasons, ", "))
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", rows[0].Tool, strings.Join(callable, ", "))
	}
}

// countTools returns a phrase with the number of the operator's own tools and
// of built-in tools.
func countTools(own, shipped int, hasFolder bool) string {
	ofShipped := countNoun(shipped, "shipped tool", "shipped tools")
	if !hasFolder && own == 0 {
		return ofShipped
	}
	return countNoun(own, "own tool", "own tools") + ", " + ofShipped
}

type applyCmd struct {
	jsonFlag
	Dir string `arg:"" optional:"" help:"Folder with manifests (default: --tools)."`
}

func (c applyCmd) Run(p *program) error {
	from, err := p.inspectedManifestSources(c.Dir)
	if err != nil {
		return err
	}
	db, err := p.openExisting(p.ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	blobs, err := p.openBlobs(p.ctx)
	if err != nil {
		return err
	}
	defer blobs.Close()
	cur := toolsync.Syncer{DB: db, Blobs: blobs, Folders: from}
	res, err := cur.ApplyManifests(p.ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		rows := []map[string]string{}
		for _, ch := range res.Changes {
			rows = append(rows, map[string]string{"kind": ch.Kind, "slug": ch.Slug, "id": ch.ID, "what": ch.Action})
		}
		err = p.printResult(true, map[string]any{"changes": rows, "problems": problemRows(res.Problems), "warnings": problemRows(res.Warnings)}, "")
	} else {
		for _, w := range res.Warnings {
			fmt.Fprintln(p.stderr, "warning:", w)
		}
		for _, ch := range res.Changes {
			fmt.Fprintf(p.stdout, "%s %s %s (%s)\n", ch.Action, ch.Kind, ch.Slug, ch.ID)
		}
		err = p.printProblems(res.Problems, fmt.Sprintf("applied: %d changes", len(res.Changes)))
	}
	return problemsAsError(err, res.Problems)
}

// printProblems prints the problems to standard error. If there are none, it
// prints fine to standard output.
func (s streams) printProblems(all []catalog.Problem, fine string) error {
	for _, one := range all {
		fmt.Fprintln(s.stderr, one)
	}
	if len(all) > 0 {
		return nil
	}
	_, err := fmt.Fprintln(s.stdout, fine)
	return err
}

func problemsAsError(err error, all []catalog.Problem) error {
	if err == nil && len(all) > 0 {
		return errProblems
	}
	return err
}

func problemRows(all []catalog.Problem) []map[string]any {
	rows := []map[string]any{}
	for _, one := range all {
		rows = append(rows, map[string]any{"file": one.File, "line": one.Line, "column": one.Column, "message": one.Message})
	}
	return rows
}

type listCmd struct {
	jsonFlag
	serviceFlags
	Search []string `arg:"" optional:"" help:"Only tools with these words in their name, description or tags." complete:"tools"`
}

func (c listCmd) Run(p *program) error {
	if c.usesService(p) {
		return c.listRemote(p)
	}
	return p.withReading(func(ctx context.Context, db *sqldb.DB) error {
		all, err := p.readTools(ctx, db)
		if err != nil {
			return err
		}
		table := [][]string{{"TOOL", "DISPLAY NAME", "PRICE", "ENGINE", "ID"}}
		rows := []map[string]any{}
		for _, t := range all {
			if !matchesWords(strings.Join(c.Search, " "), t.Slug, t.Name, t.Description) {
				continue
			}
			rows = append(rows, map[string]any{
				"id": t.ID, "slug": t.Slug, "name": t.Name, "tool_fields_hash": t.Hash,
				"pricing_type": t.Price.Type, "tokens_per_result": t.Price.Tokens, "engine": t.Engine.Name,
			})
			price := "free"
			if t.Price.Type == catalog.Cost {
				price = strconv.FormatInt(t.Price.Tokens, 10)
			}
			table = append(table, []string{t.Slug, t.Name, price, t.Engine.Name, t.ID})
		}
		if c.JSON {
			return p.printResult(true, map[string]any{"tools": rows}, "")
		}
		return p.printTable(table)
	})
}

// readTools returns all tools of the catalog, in the order of the catalog.
func (p *program) readTools(ctx context.Context, db *sqldb.DB) ([]*catalog.Tool, error) {
	cat := catalog.New(db, slog.New(slog.NewTextHandler(p.stderr, nil)))
	if _, err := cat.RefreshSnapshot(ctx); err != nil {
		return nil, err
	}
	return cat.CurrentSnapshot().AllTools(), nil
}
