package execengine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"atelier/internal/engine"
	"atelier/internal/engine/subprocess"
)

const (
	maxPreview = 1 << 20
	maxMessage = 300 // characters of a program's error message
	step       = 0.001
)

// programOutput is the state of a program's messages. All of them are handled in one goroutine.
type programOutput struct {
	killProgram func() // kills the program
	job         engine.Job
	out         engine.Sink
	folder      *subprocess.Folder
	announced   map[string]bool

	delivered int
	progress  float64
	reported  *engine.Error // error that the program reported
	failure   error         // reason for killing the program
}

// message is a line of the program's output.
type message struct {
	Progress *float64      `json:"progress"`
	Preview  *string       `json:"preview"`
	Output   *string       `json:"output"`
	Error    *programError `json:"error"`
}

type programError struct {
	Message   string      `json:"message"`
	Code      engine.Code `json:"code"`
	Transient *bool       `json:"transient"`
}

// handleLine handles a line. Results are stored while ctx, the job's context, lasts.
func (n *programOutput) handleLine(ctx context.Context, line []byte) {
	line = bytes.TrimSpace(line)
	if n.failure != nil || ctx.Err() != nil || !bytes.HasPrefix(line, []byte("{")) {
		return
	}
	var i message
	if json.Unmarshal(line, &i) != nil {
		return
	}
	if i.Progress != nil {
		n.reportProgress(*i.Progress)
	}
	if i.Preview != nil {
		n.sendPreview(*i.Preview)
	}
	if i.Output != nil {
		if err := n.deliverResult(ctx, *i.Output); err != nil {
			n.failure = err
			n.killProgram()
			return
		}
	}
	if i.Error != nil {
		n.reported = i.Error.toFailure()
	}
}

// reportProgress reports progress, which never decreases, and skips small steps.
func (n *programOutput) reportProgress(to float64) {
	to = min(max(to, 0), 1)
	if to >= n.progress+step || to == 1 && n.progress < 1 {
		n.progress = to
		n.out.Progress(to)
	}
}

// sendPreview sends a picture to the sink. It ignores files that are no pictures: they do not fail
// a run.
func (n *programOutput) sendPreview(name string) {
	f, err := n.folder.OpenFile(name)
	if err != nil {
		return
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPreview+1))
	if err == nil && len(b) <= maxPreview && (bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")) || bytes.HasPrefix(b, []byte("\xff\xd8\xff"))) {
		n.out.Preview(b)
	}
}

// deliverResult passes a result to the sink. The name comes from the program and is untrusted.
func (n *programOutput) deliverResult(ctx context.Context, name string) error {
	if n.delivered >= n.job.NumResults || n.announced[path.Clean(name)] {
		return nil // a result counts once, even if it is announced again
	}
	if !filepath.IsLocal(name) {
		return errBadResult.WithCause(errors.New("the result is outside the folder"))
	}
	f, err := n.folder.OpenFile(name)
	if err != nil {
		return errBadResult.WithCause(err)
	}
	defer f.Close()
	n.announced[path.Clean(name)] = true
	if err := n.out.Output(ctx, engine.Result{Data: f}); err != nil {
		return err
	}
	n.delivered++
	return nil
}

// finalError returns the outcome of the job after the program's end.
func (n *programOutput) finalError(ctx context.Context, err error) error {
	_, exit := errors.AsType[*subprocess.Exit](err)
	switch {
	case n.failure != nil:
		return n.failure
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, subprocess.ErrLimit):
		return errLimit.WithCause(err)
	case n.reported != nil:
		return n.reported.WithCause(err)
	case exit:
		return errFailed.WithCause(err)
	case err != nil:
		return errMissing.WithCause(err)
	}
	return nil
}

// deliverUnannounced passes files in out/ that were not announced to the sink.
func (n *programOutput) deliverUnannounced(ctx context.Context) error {
	entries, err := n.folder.ListEntries("out")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errBadResult.WithCause(err)
	}
	for _, e := range entries {
		name := path.Join("out", e.Name())
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || n.announced[name] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := n.deliverResult(ctx, name); err != nil {
			return err
		}
	}
	if n.delivered == 0 {
		return errNoResult
	}
	return nil
}

// toFailure converts the program's error into a failure.
func (t *programError) toFailure() *engine.Error {
	f := engine.Error{Code: engine.Failed, Message: sanitizeText(t.Message)}
	if t.Code == engine.Unavailable || t.Code == engine.Refused {
		f.Code = t.Code
	}
	f.Transient = f.Code == engine.Unavailable
	if t.Transient != nil {
		f.Transient = *t.Transient
	}
	if f.Message == "" {
		f.Message = errFailed.Message
	}
	return &f
}

// pathPattern matches addresses and paths, which are not shown to people.
var pathPattern = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://\S+|(^|[\s"'=(])/[\w./-]+`)

// sanitizeText makes a program's message fit to be shown: one short line.
func sanitizeText(text string) string {
	text = pathPattern.ReplaceAllString(text, "$1…")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(text); len(runes) > maxMessage {
		text = string(runes[:maxMessage]) + "…"
	}
	return text
}
