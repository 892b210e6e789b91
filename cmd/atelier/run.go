package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"atelier/client"
	"atelier/internal/base/sanitize"
	"atelier/internal/cli/term"
	"atelier/internal/engine"
	"atelier/internal/engine/manifestdraft"
)

type runCmd struct {
	jsonFlag
	serviceFlags
	Tool     string   `arg:"" help:"The tool's name, as in atelier tools, or its id." complete:"tools"`
	Inputs   []string `arg:"" optional:"" help:"field=value; field=@FILE sends a file, field=result:ID uses an earlier result, field=upload:ID an upload. Lists are separated by commas; a size is written 1280x720. A field that is given several times makes a run for each value." complete:"fields"`
	Results  int      `help:"Number of results of each run." placeholder:"N"`
	Repeat   int      `help:"Run this many times." default:"1" placeholder:"N"`
	Parallel int      `help:"Number of runs side by side." default:"4" placeholder:"N"`
	Out      string   `help:"Folder for the results." default:"." placeholder:"DIR"`
	As       string   `help:"Name of the result files without extension (default: the tool's name)." placeholder:"NAME"`
	RetryOf  string   `help:"Earlier run of the same flow: its finished steps with the same inputs are taken over." placeholder:"ID"`
	Webhook  string   `help:"Address that receives an event when a run has ended." placeholder:"URL"`
	Detach   bool     `help:"Start the runs and print their ids; do not wait." xor:"how"`
	Price    bool     `help:"Print the price and start nothing." xor:"how"`
	Preview  string   `help:"Show pictures in the terminal: auto, kitty, iterm, sixel or none." enum:"auto,kitty,iterm,sixel,none" default:"auto" placeholder:"HOW"`
}

// maxRuns bounds the runs of one command.
const maxRuns = 100

// Run runs a tool through the public API, once or several times side by side,
// and saves the results.
func (c runCmd) Run(p *program) error {
	switch {
	case c.Repeat < 1 || c.Parallel < 1:
		return usageError{errors.New("--repeat and --parallel must be above 0")}
	case c.Results < 0:
		return usageError{errors.New("--results must be above 0")}
	}
	p.patient = true
	service, err := c.connect(p)
	if err != nil {
		return err
	}
	tool, err := findTool(p.ctx, service, c.Tool)
	if err != nil {
		return err
	}
	requests, err := c.readRequests(tool)
	if err != nil {
		return usageError{err}
	}
	price, err := c.readPrice(p, service, tool, requests)
	if err != nil || c.Price {
		return err
	}
	if c.Detach {
		return c.startOnly(p, service, requests)
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil { //nolint:gosec // the user may share the results
		return err
	}
	b := newRunBatch(p, service, c, tool, requests, price)
	return b.run()
}

// readPrice asks for the price of the runs and prints it. It returns an error if
// the account cannot start a run now.
func (c runCmd) readPrice(p *program, service *client.Client, tool *client.ToolDetail, requests []client.RunRequest) (*client.CostPreview, error) {
	one := requests[0]
	one.Inputs = map[string]any{}
	for key, value := range requests[0].Inputs {
		if !hasFile(value) { // files are not sent for a price
			one.Inputs[key] = value
		}
	}
	price, err := service.Runs.PreviewCost(p.ctx, one)
	if err != nil {
		return nil, err
	}
	total := (price.TotalTokens + price.FreeAllowanceUsed) * int64(len(requests))
	text := "free"
	if total > 0 {
		text = countNoun(int(total), "token", "tokens")
	}
	if len(requests) > 1 {
		text += fmt.Sprintf(" for %d runs", len(requests))
	}
	if price.EstimatedSeconds != nil {
		text += ", about " + showSeconds(time.Duration(*price.EstimatedSeconds)*time.Second)
		if len(requests) > 1 {
			text += " each"
		}
	}
	switch {
	case c.Price:
		return price, p.printResult(c.JSON, map[string]any{"runs": len(requests), "tokens": total, "price": price}, text)
	case !price.CanRun:
		return nil, statusError{fmt.Errorf("%s cannot run now: %s", safeSlug(tool.Slug), cleanText(showOptional(price.BlockingReason))), exitForbidden}
	case !c.JSON:
		fmt.Fprintf(p.stderr, "%s: %s\n", safeSlug(tool.Slug), text)
	}
	return price, nil
}

// startOnly starts the runs one after the other and prints their ids.
func (c runCmd) startOnly(p *program, service *client.Client, requests []client.RunRequest) error {
	rows := []map[string]any{}
	for _, request := range requests {
		run, err := service.Runs.Create(p.ctx, request)
		if err != nil {
			return err
		}
		rows = append(rows, map[string]any{"request_id": run.RequestID, "status": run.Status})
		if !c.JSON {
			fmt.Fprintln(p.stdout, run.RequestID)
		}
	}
	switch {
	case !c.JSON:
		return nil
	case len(rows) == 1:
		return p.printResult(true, rows[0], "")
	}
	return p.printResult(true, map[string]any{"data": rows}, "")
}

// runBatch is the runs of one command.
type runBatch struct {
	*program
	service *client.Client
	command runCmd
	slug    string
	tasks   []*runTask
	display *runDisplay
	picture term.Protocol

	mu        sync.Mutex
	cancelled bool // the person wants the runs to end
}

// runTask is one run of a batch.
type runTask struct {
	number  int
	name    string
	request client.RunRequest

	// The fields below are guarded by the batch's mutex.
	id    string
	saved *savedRun
	err   error
}

// savedRun is a run that has ended, as it is printed in JSON.
type savedRun struct {
	RequestID     string           `json:"request_id"`
	Status        client.RunStatus `json:"status"`
	Seed          int64            `json:"seed"`
	TokensCharged int64            `json:"tokens_charged"`
	Files         []string         `json:"files"`
	Results       []string         `json:"results"`
	Notes         []string         `json:"notes,omitempty"` // one per file, if there are any
	Error         *runProblem      `json:"error,omitempty"`
}

type runProblem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func newRunBatch(p *program, service *client.Client, c runCmd, tool *client.ToolDetail, requests []client.RunRequest, price *client.CostPreview) *runBatch {
	b := &runBatch{
		program: p,
		service: service,
		command: c,
		slug:    safeSlug(tool.Slug),
		picture: c.pictureProtocol(p),
	}
	if c.JSON {
		b.picture = term.NoPictures
	}
	for i, request := range requests {
		name := b.slug
		if len(requests) > 1 {
			name += " " + strconv.Itoa(i+1)
		}
		b.tasks = append(b.tasks, &runTask{number: i, name: name, request: request})
	}
	b.display = newRunDisplay(p, c.JSON, price.EstimatedSeconds)
	p.onRetry = b.noticeRetry
	return b
}

// noticeRetry says that a request is repeated, if the wait is long enough to
// wonder.
func (b *runBatch) noticeRetry(err error, wait time.Duration) {
	if b.command.JSON || wait < time.Second {
		return
	}
	text := err.Error()
	if e, ok := errors.AsType[*client.Error](err); ok {
		text = e.Message
	}
	b.display.print(fmt.Sprintf("%s: trying again in %v: %s", b.slug, wait.Round(time.Second), cleanText(text)))
}

// run runs all tasks, and reports the results in the order of the tasks.
func (b *runBatch) run() error {
	// Ctrl-C cancels the runs at the service and not the requests that do so.
	ctx, giveUp := context.WithCancel(context.WithoutCancel(b.ctx))
	defer giveUp()
	stopSignals := b.watchSignals(ctx, giveUp)
	b.display.start()
	var group errgroup.Group
	group.SetLimit(b.command.Parallel)
	for _, t := range b.tasks {
		group.Go(func() error {
			b.runTask(ctx, t)
			return nil
		})
	}
	group.Wait() //nolint:errcheck // tasks keep their errors
	b.display.stop()
	stopSignals()
	return b.report()
}

// runTask starts a run, waits for its end and saves its results.
func (b *runBatch) runTask(ctx context.Context, t *runTask) {
	if b.isCancelled() {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.err = statusError{errors.New("not started"), exitInterrupted}
		return
	}
	b.display.begin(t.number, t.name)
	saved, err := b.followTask(ctx, t)
	b.mu.Lock()
	t.saved = saved
	t.err = err
	b.mu.Unlock()
	b.display.finish(t.number, b.describeEnd(t), b.showPictures(ctx, saved))
}

func (b *runBatch) isCancelled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cancelled
}

func (b *runBatch) followTask(ctx context.Context, t *runTask) (*savedRun, error) {
	run, err := b.service.Runs.Create(ctx, t.request)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	t.id = run.RequestID
	cancelled := b.cancelled
	b.mu.Unlock()
	if cancelled { // while the run was created
		if _, err := b.service.Runs.Cancel(ctx, run.RequestID); err != nil {
			return nil, err
		}
	}
	run, err = run.Wait(ctx, b.display.watch(t.number, b.previews(ctx)))
	if err != nil {
		return nil, fmt.Errorf("run %s continues on the server, but its progress cannot be followed: %w", t.id, err)
	}
	saved := &savedRun{
		RequestID:     run.RequestID,
		Status:        run.Status,
		Seed:          run.Seed,
		TokensCharged: run.TokensCharged,
		Files:         []string{},
		Results:       []string{},
	}
	if err := run.Err(); err != nil {
		return saved, b.endError(saved, err)
	}
	return saved, b.saveResults(ctx, t, run, saved)
}

// endError returns the error of a run that has not succeeded.
func (b *runBatch) endError(saved *savedRun, err error) error {
	if failure, ok := errors.AsType[*client.RunFailure](err); ok {
		saved.Error = &runProblem{string(failure.Code), failure.Message}
		return statusError{errors.New(cleanText(failure.Error())), exitRunFailed}
	}
	if b.isCancelled() {
		return statusError{err, exitInterrupted}
	}
	return statusError{err, exitCancelled}
}

// saveResults downloads the results of a run.
func (b *runBatch) saveResults(ctx context.Context, t *runTask, run *client.Run, saved *savedRun) error {
	var notes []string
	said := false
	for i, o := range run.Outputs {
		name := cmp.Or(b.command.As, b.slug)
		if len(b.tasks) > 1 {
			name += "-" + strconv.Itoa(t.number+1)
		}
		if len(run.Outputs) > 1 {
			name += "-" + strconv.Itoa(i+1)
		}
		path := filepath.Join(b.command.Out, name+fileExtension(o.MimeType))
		if err := b.service.Download(ctx, o.File(), path, nil); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		saved.Files = append(saved.Files, path)
		saved.Results = append(saved.Results, o.ID)
		note := ""
		if o.Note != nil {
			note = *o.Note
		}
		notes = append(notes, note)
		if note != "" {
			said = true
			b.display.print(fmt.Sprintf("%s: %s", path, sanitize.Line(note, engine.MaxNote))) // the service is not trusted
		}
	}
	if said {
		saved.Notes = notes
	}
	return nil
}

// describeEnd returns the line about a run that has ended; "" if nothing is to
// be said.
func (b *runBatch) describeEnd(t *runTask) string {
	palette := b.palette(b.stderr)
	switch {
	case t.saved == nil:
		return ""
	case t.err == nil:
		text := t.name + ": " + palette.Green("succeeded")
		if t.saved.TokensCharged > 0 {
			text += ", " + countNoun(int(t.saved.TokensCharged), "token", "tokens")
		}
		return text
	}
	return t.name + ": " + palette.Red(string(t.saved.Status))
}

// report prints the files, and returns the errors of the runs. The exit status
// is that of the first error.
func (b *runBatch) report() error {
	rows := []*savedRun{}
	var problems []error
	for _, t := range b.tasks {
		if t.saved != nil {
			rows = append(rows, t.saved)
		}
		if t.err != nil {
			if len(b.tasks) > 1 {
				t.err = fmt.Errorf("%s: %w", t.name, t.err)
			}
			problems = append(problems, t.err)
		}
	}
	var err error
	switch {
	case !b.command.JSON:
		for _, row := range rows {
			if len(row.Files) > 0 {
				err = b.printResult(false, nil, strings.Join(row.Files, "\n"))
			}
		}
	case len(b.tasks) == 1 && len(rows) == 1:
		err = b.printResult(true, rows[0], "")
	case len(b.tasks) > 1:
		err = b.printResult(true, map[string]any{"data": rows}, "")
	}
	return joinProblems(append(problems, err))
}

// joinProblems joins the errors of several runs. The exit status is that of the
// first.
func joinProblems(all []error) error {
	err := errors.Join(all...)
	for _, first := range all {
		if first != nil {
			return statusError{err, exitStatus(first)}
		}
	}
	return nil
}

// safeSlug returns a tool's slug, which becomes a file name. The service is not
// trusted, so an invalid slug is converted to a valid one.
func safeSlug(slug string) string {
	isSlug := slug != "" && strings.Trim(slug, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
	if isSlug {
		return slug
	}
	return manifestdraft.Slug(slug)
}
