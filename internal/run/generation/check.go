package generation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"atelier/internal/base/fault"
	"atelier/internal/base/sqldb"
	"atelier/internal/catalog/catalog"
	"atelier/internal/file/asset"
	"atelier/internal/file/library"
	"atelier/internal/run/policy"
	"atelier/internal/run/run"
)

// accepted is a draft that nothing is wrong with.
type accepted struct {
	tool   *catalog.Tool
	filled catalog.Filled
	n      int64 // results
	price  int64
	inputs []run.Input
	stored string // inputs as they are kept
	seed   int64
}

// check holds a draft against the tool that it is for. A draft that is only to
// be priced may lack what is required.
func (s *Service) check(ctx context.Context, d Draft, pricing bool) (accepted, error) {
	tool, ok := s.Catalog.Snapshot().View(AudienceOf(d.Principal)).Tool(d.ToolID)
	if !ok {
		return accepted{}, errNoTool
	}
	if d.ToolHash != tool.Hash {
		return accepted{}, stale(tool.Hash)
	}
	a := accepted{tool: tool}
	filled, problems := tool.Fill(d.Inputs, catalog.FillOptions{Draft: pricing, Files: len(d.Files)})
	a.filled = filled
	if most := s.Settings.InputFiles; len(filled.Refs) > most {
		return accepted{}, TooManyFiles(most, filled.Refs[most].Path)
	} else if len(d.Files) > most {
		return accepted{}, TooManyFiles(most, fmt.Sprintf("files.%d", most))
	}
	problems = append(problems, s.problems(d)...)
	resolved, more, err := s.resolve(ctx, d, filled.Refs)
	if err != nil {
		return accepted{}, err
	}
	if problems = append(problems, more...); len(problems) > 0 {
		return accepted{}, invalid(problems)
	}
	if a.n, err = tool.Results(d.NumResults, int64(s.Settings.NumResults)); err != nil {
		return accepted{}, err
	}
	a.price = tool.Cost(a.n)
	a.inputs = resolved
	a.seed = int64(rand.Uint32())
	if filled.Seed != nil {
		a.seed = *filled.Seed
	}
	if a.stored, err = storedInputs(filled); err != nil {
		return accepted{}, err
	}
	return a, nil
}

var errNoTool = fault.New(fault.NotFound, "There is no such tool.")

func stale(live string) error {
	return fault.New(fault.ToolSchemaStale, "The tool changed since you read it. Fetch it again.").With("expected_tool_fields_hash", live)
}

// still makes sure that the tool is as the draft was checked against: another
// node may have changed it a moment ago.
func still(ctx context.Context, tx *sqldb.Tx, t *catalog.Tool) error {
	live, ok, err := catalog.Live(ctx, tx, t.ID)
	switch {
	case err != nil:
		return err
	case !ok:
		return errNoTool
	case live != t.Hash:
		return stale(live)
	}
	return nil
}

// problems are those of everything beside the inputs.
func (s *Service) problems(d Draft) []fault.Field {
	var all []fault.Field
	if len(d.Metadata) > s.Settings.MetadataBytes {
		all = append(all, fault.Field{Path: "metadata", Message: fmt.Sprintf("Must be at most %d bytes when written without spaces.", s.Settings.MetadataBytes)})
	}
	if d.WebhookURL != "" {
		if problem := s.Guard.CheckURL(d.WebhookURL); problem != "" {
			all = append(all, fault.Field{Path: "webhook_url", Message: problem})
		}
	}
	if utf8.RuneCountInString(d.Plugin) > s.Settings.PluginLength || strings.ContainsFunc(d.Plugin, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		all = append(all, fault.Field{Path: "plugin", Message: fmt.Sprintf("Must be one line of at most %d characters.", s.Settings.PluginLength)})
	}
	return all
}

func invalid(problems []fault.Field) error {
	e := fault.New(fault.Invalid, "Some of what you sent is not valid.")
	e.Fields = problems
	return e
}

// TooManyFiles is what a request with more input files than allowed gets. The path
// is of the first that is too many.
func TooManyFiles(most int, path string) error {
	return fault.New(fault.TooManyInputFiles, fmt.Sprintf("A run takes at most %d input files.", most)).With("limit", most).With("path", path)
}

// resolve finds the files that references name, for the paying account alone.
func (s *Service) resolve(ctx context.Context, d Draft, refs []catalog.Ref) (inputs []run.Input, problems []fault.Field, err error) {
	if len(refs) == 0 {
		return nil, nil, nil
	}
	err = s.DB.Read(ctx, func(tx *sqldb.Tx) error {
		inputs = nil
		problems = nil
		for _, ref := range refs {
			var a asset.Asset
			if ref.Kind == catalog.Multipart {
				a = d.Files[ref.FileIndex].Asset
			} else {
				var err error
				a, err = library.Resolve(ctx, tx, d.Principal.AccountID, string(ref.Kind), ref.ID)
				if f := missing(err); f != nil {
					problems = append(problems, fault.Field{Path: ref.Path, Message: f.Message})
					continue
				}
				if err != nil {
					return err
				}
			}
			if problem := unfit(a, ref); problem != "" {
				problems = append(problems, fault.Field{Path: ref.Path, Message: problem})
				continue
			}
			inputs = append(inputs, run.Input{Field: ref.Field, Place: ref.Place, AssetID: a.ID})
		}
		return nil
	})
	return inputs, problems, err
}

func missing(err error) *fault.Error {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == fault.NotFound {
		return f
	}
	return nil
}

// unfit tells why a field does not take a file, "" where it does.
func unfit(a asset.Asset, ref catalog.Ref) string {
	if a.Type != ref.Media {
		return "Must be " + mediaNames[ref.Media] + "."
	}
	if len(ref.Accept) > 0 && !slices.Contains(ref.Accept, a.MimeType) {
		return "Must be one of " + strings.Join(ref.Accept, ", ") + "."
	}
	return ""
}

var mediaNames = map[string]string{"IMG": "a picture", "VID": "a video", "AUDIO": "a sound file", "ASSET_3D": "a 3D model"}

// storedInputs are the inputs as the library shows them: values with defaults,
// and media as they were referred to.
func storedInputs(f catalog.Filled) (string, error) {
	all := make(map[string]any, len(f.Values)+len(f.Refs))
	for key, v := range f.Values {
		all[key] = v
	}
	for _, ref := range f.Refs {
		one := map[string]any{"kind": string(ref.Kind)}
		if ref.Kind == catalog.Multipart {
			one["file_index"] = ref.FileIndex
		} else {
			one["id"] = ref.ID
		}
		switch before := all[ref.Field].(type) {
		case nil:
			if ref.List {
				all[ref.Field] = []any{one}
			} else {
				all[ref.Field] = one
			}
		case []any:
			all[ref.Field] = append(before, one)
		}
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// texts are what the content policy looks at.
func texts(f catalog.Filled) []policy.Text {
	var all []policy.Text
	for _, t := range f.Texts {
		all = append(all, policy.Text{Path: t.Path, Value: t.Value})
	}
	return all
}

// pollAfter is how long to wait before asking again: about as long as a result
// takes, or the longest wait where nobody is there to make it.
func (s *Service) pollAfter(t *catalog.Tool) time.Duration {
	if s.isAway(t.Engine.Name) {
		return s.Settings.PollMax
	}
	wait := cmp.Or(t.Recent, t.Average, 2*time.Second)
	wait = (wait + time.Second - 1).Truncate(time.Second)
	return min(max(wait, s.Settings.PollMin), s.Settings.PollMax)
}
