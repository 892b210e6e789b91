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
	maxMessage = 300 // maximum length of a program's error message, in characters
	step       = 0.001
)

// programOutput is the state while a program's output is processed. It is used
// by one goroutine only.
type programOutput struct {
	killProgram func() // kills the program and its child processes
	job         engine.Job
	out         engine.Sink
	folder      *subprocess.Folder
	announced   map[string]bool

	delivered int
	progress  float64
	reported  *engine.Error // error that the program reported
	failure   error         // why the program was killed
}

// message is a line of the program's standard output that is a JSON object.
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

// handleLine handles a line of the program's standard output. ctx is the job's
// context; after its cancellation, lines are ignored.
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

// reportProgress reports the completed fraction of the job to the sink. It
// ignores decreases and small increases.
func (n *programOutput) reportProgress(to float64) {
	to = min(max(to, 0), 1)
	if to >= n.progress+step || to == 1 && n.progress < 1 {
		n.progress = to
		n.out.Progress(to)
	}
}

// sendPreview sends a picture to the sink. It ignores files that are not
// pictures, because an invalid preview must not fail a run.
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

// deliverResult passes the file called name to the sink as a result. The name
// comes from the program and is not trusted.
func (n *programOutput) deliverResult(ctx context.Context, name string) error {
	if n.delivered >= n.job.NumResults || n.announced[path.Clean(name)] {
		return nil // a result counts once, even if it is announced again
	}
	if !filepath.IsLocal(name) {
		return errBadResult.WithCause(errors.New("the result file is outside the job's working folder"))
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

// finalError returns the error that the job ends with after the program's
// exit, or nil if it succeeded. err is the error of the program's process.
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

// deliverUnannounced passes to the sink those files in out/ that the program
// has not announced in a message.
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

// toFailure converts an error that the program reported to an engine.Error.
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

// pathPattern matches URLs and file paths, which are not shown to people.
var pathPattern = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://\S+|(^|[\s"'=(])/[\w./-]+`)

// sanitizeText makes a program's message fit to be shown to people: one line
// of at most maxMessage characters, without URLs and file paths.
func sanitizeText(text string) string {
	text = pathPattern.ReplaceAllString(text, "$1…")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(text); len(runes) > maxMessage {
		text = string(runes[:maxMessage]) + "…"
	}
	return text
}
