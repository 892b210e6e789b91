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
	maxMessage = 300 // characters of a program's own words
	step       = 0.001
)

// news is what a program told so far. All of it comes from one goroutine.
type news struct {
	end       func() // ends the program
	job       engine.Job
	out       engine.Sink
	folder    *subprocess.Folder
	announced map[string]bool

	taken    int
	progress float64
	told     *engine.Error // by the program
	failed   error         // why we ended it
}

// item is a line that says something.
type item struct {
	Progress *float64 `json:"progress"`
	Preview  *string  `json:"preview"`
	Output   *string  `json:"output"`
	Error    *trouble `json:"error"`
}

type trouble struct {
	Message   string      `json:"message"`
	Code      engine.Code `json:"code"`
	Transient *bool       `json:"transient"`
}

// line hears a line. ctx is the job's: results are taken while it lasts.
func (n *news) line(ctx context.Context, line []byte) {
	line = bytes.TrimSpace(line)
	if n.failed != nil || ctx.Err() != nil || !bytes.HasPrefix(line, []byte("{")) {
		return
	}
	var i item
	if json.Unmarshal(line, &i) != nil {
		return
	}
	if i.Progress != nil {
		n.advance(*i.Progress)
	}
	if i.Preview != nil {
		n.preview(*i.Preview)
	}
	if i.Output != nil {
		if err := n.take(ctx, *i.Output); err != nil {
			n.failed = err
			n.end()
			return
		}
	}
	if i.Error != nil {
		n.told = i.Error.failure()
	}
}

// advance tells progress, which only grows, and not every trifle of it.
func (n *news) advance(to float64) {
	to = min(max(to, 0), 1)
	if to >= n.progress+step || to == 1 && n.progress < 1 {
		n.progress = to
		n.out.Progress(to)
	}
}

// preview shows a picture, and drops what is none: a run does not fail for it.
func (n *news) preview(name string) {
	f, err := n.folder.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPreview+1))
	if err == nil && len(b) <= maxPreview && (bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")) || bytes.HasPrefix(b, []byte("\xff\xd8\xff"))) {
		n.out.Preview(b)
	}
}

// take hands a result over. The name is the program's word, and may be anything.
func (n *news) take(ctx context.Context, name string) error {
	if n.taken >= n.job.NumResults || n.announced[path.Clean(name)] {
		return nil // one result is one, and paid once, however often it is told
	}
	if !filepath.IsLocal(name) {
		return errNoFile.Because(errors.New("a result outside the folder"))
	}
	f, err := n.folder.Open(name)
	if err != nil {
		return errNoFile.Because(err)
	}
	defer f.Close()
	n.announced[path.Clean(name)] = true
	if err := n.out.Output(ctx, engine.Result{Data: f}); err != nil {
		return err
	}
	n.taken++
	return nil
}

// verdict says what the program's end means.
func (n *news) verdict(ctx context.Context, err error) error {
	_, exit := errors.AsType[*subprocess.Exit](err)
	switch {
	case n.failed != nil:
		return n.failed
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, subprocess.ErrLimit):
		return errLimit.Because(err)
	case n.told != nil:
		return n.told.Because(err)
	case exit:
		return errFailed.Because(err)
	case err != nil:
		return errMissing.Because(err)
	}
	return nil
}

// rest takes what is in out/ and was not announced.
func (n *news) rest(ctx context.Context) error {
	entries, err := n.folder.Entries("out")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errNoFile.Because(err)
	}
	for _, e := range entries {
		name := path.Join("out", e.Name())
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || n.announced[name] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := n.take(ctx, name); err != nil {
			return err
		}
	}
	if n.taken == 0 {
		return errNothing
	}
	return nil
}

// failure is the program's error as one of ours.
func (t *trouble) failure() *engine.Error {
	f := engine.Error{Code: engine.Failed, Message: say(t.Message)}
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

// places are what people need not know: addresses, and paths.
var places = regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://\S+|(^|[\s"'=(])/[\w./-]+`)

// say makes a program's words fit to be shown: one line, not long.
func say(text string) string {
	text = places.ReplaceAllString(text, "$1…")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(text); len(runes) > maxMessage {
		text = string(runes[:maxMessage]) + "…"
	}
	return text
}
