package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"atelier/client"
	"atelier/internal/base/sanitize"
)

type runsCmd struct {
	List   runsListCmd   `cmd:"" default:"withargs" help:"List your runs, the newest first."`
	Show   runsShowCmd   `cmd:"" help:"Show a run with its inputs and results."`
	Cancel runsCancelCmd `cmd:"" help:"Cancel a run; its tokens are released."`
}

type runsListCmd struct {
	jsonFlag
	serviceFlags
	pageFlags
	Status string `help:"Only runs with this status: pending, succeeded, failed or cancelled." enum:",pending,succeeded,failed,cancelled" default:"" placeholder:"STATUS"`
	Tool   string `help:"Only runs of this tool." placeholder:"TOOL" complete:"tools"`
}

func (c runsListCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	params := client.RunsListParams{Status: client.RunStatus(c.Status)}
	if c.Tool != "" {
		tool, err := findTool(p.ctx, service, c.Tool)
		if err != nil {
			return err
		}
		params.ToolID = tool.ID
	}
	return remoteList[client.RunRecord]{
		columns: []string{"CREATED", "STATUS", "TOOL", "RESULTS", "TOKENS", "PROMPT", "ID"},
		read: func(cursor string, limit int64) ([]client.RunRecord, *string, error) {
			params.Cursor = cursor
			params.Limit = limit
			page, err := service.Runs.List(p.ctx, params)
			if err != nil {
				return nil, nil, err
			}
			return page.Data, page.NextCursor, nil
		},
		cells: func(r client.RunRecord) []string {
			return []string{
				showTime(r.Created), describeStatus(r), showOptional(r.ToolName), showCount(int64(len(r.Outputs))), showCount(r.TokensCharged),
				shortenWords(showOptional(r.Prompt), 40), r.RequestID,
			}
		},
	}.printPages(p, c.JSON, c.pageFlags)
}

// describeStatus returns the status of a run, and the stage of a pending one.
func describeStatus(r client.RunRecord) string {
	switch {
	case r.Stage == nil:
		return string(r.Status)
	case r.Progress != nil:
		return fmt.Sprintf("%s %.0f%%", *r.Stage, *r.Progress*100)
	}
	return string(*r.Stage)
}

// runFlags are the flags of commands about one run.
type runFlags struct {
	jsonFlag
	serviceFlags
	ID string `arg:"" help:"Id of the run." complete:"runs"`
}

type runsShowCmd struct{ runFlags }

func (c runsShowCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	run, err := service.Runs.Get(p.ctx, c.ID, client.RunIncludeInputs)
	if err != nil {
		return err
	}
	if c.JSON {
		return p.printResult(true, run, "")
	}
	return c.describeRun(p, &run.RunRecord)
}

// cleanText removes control characters from a text of the service.
func cleanText(text string) string {
	const most = 4000
	return sanitize.Line(text, most)
}

// describeRun prints a run for people.
func (c runsShowCmd) describeRun(p *program, r *client.RunRecord) error {
	rows := [][]string{
		{"run", r.RequestID},
		{"tool", showOptional(r.ToolName)},
		{"status", describeStatus(*r)},
		{"created", showTime(r.Created)},
		{"started", showOptionalTime(r.Started)},
		{"finished", showOptionalTime(r.Finished)},
		{"tokens", showCount(r.TokensCharged)},
		{"prompt", showOptional(r.Prompt)},
		{"seed", showCount(r.Seed)},
	}
	if len(r.Inputs) > 0 {
		rows = append(rows, []string{"inputs", describeInputs(r.Inputs)})
	}
	if r.Error != nil {
		rows = append(rows, []string{"error", string(r.Error.Code) + ": " + r.Error.Message})
	}
	if r.Webhook != nil {
		rows = append(rows, []string{"webhook", fmt.Sprintf("%s after %s", r.Webhook.State, countNoun(int(r.Webhook.Attempts), "attempt", "attempts"))})
	}
	for _, s := range r.Steps {
		rows = append(rows, []string{"step", describeStep(s)})
	}
	for _, o := range r.Outputs {
		rows = append(rows, []string{"result", fmt.Sprintf("%s (%s, %s)", o.ID, o.MimeType, showBytes(o.SizeBytes))})
	}
	for i := range rows {
		rows[i][1] = cleanText(rows[i][1])
	}
	return p.printFields(rows)
}

// describeStep returns a run of a step of a flow as one line.
func describeStep(s client.RunStep) string {
	name := s.Step
	if s.Item > 0 {
		name += fmt.Sprintf(" (item %d)", s.Item+1)
	}
	if s.Otherwise {
		name += ", otherwise"
	}
	status := string(s.Status)
	if s.Stage != nil {
		status = string(*s.Stage)
	}
	if s.Reused {
		status += ", taken over"
	}
	return fmt.Sprintf("%s: %s, %s, %s, run %s", name, showOptional(s.ToolName), status, countNoun(int(s.TokensCharged), "token", "tokens"), s.RequestID)
}

// describeInputs returns the inputs of a run as words for a command line.
func describeInputs(text json.RawMessage) string {
	var inputs map[string]any
	if json.Unmarshal(text, &inputs) != nil {
		return string(text)
	}
	var words []string
	for _, key := range slices.Sorted(maps.Keys(inputs)) {
		word := describeInput(plainNumbers(inputs[key]))
		if strings.ContainsAny(word, " \"'$&|;<>()*?#") {
			word = strconv.Quote(word)
		}
		words = append(words, key+"="+word)
	}
	return strings.Join(words, " ")
}

// describeInput returns an input as it is given to "run". A file that was sent
// with the run has no name any more.
func describeInput(value any) string {
	switch v := value.(type) {
	case map[string]any:
		switch v["kind"] {
		case "LIBRARY_REF":
			return fmt.Sprintf("result:%v", v["id"])
		case "UPLOAD_REF":
			return fmt.Sprintf("upload:%v", v["id"])
		case "MULTIPART":
			return "@…"
		}
	case []any:
		var words []string
		for _, one := range v {
			words = append(words, describeInput(one))
		}
		return strings.Join(words, ",")
	case string:
		return v
	}
	return describeDefault(value)
}

type runsCancelCmd struct{ runFlags }

func (c runsCancelCmd) Run(p *program) error {
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	run, err := service.Runs.Cancel(p.ctx, c.ID)
	if err != nil {
		return err
	}
	text := ""
	switch run.Status {
	case client.RunStatusCancelled:
		text = "cancelled " + c.ID
	case client.RunStatusPending:
		text = "the run ends as soon as its engine stops"
	case client.RunStatusSucceeded, client.RunStatusFailed:
		text = "the run had " + string(run.Status) + " before"
	}
	return p.printResult(c.JSON, run, text)
}
