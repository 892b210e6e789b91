package generation_test

import (
	"bytes"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
	"time"

	"atelier/internal/base/fault"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/ingest"
	"atelier/internal/people/principal"
	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
	"atelier/internal/run/run"
)

func ref(kind, id string) map[string]any { return map[string]any{"kind": kind, "id": id} }
func part(i int) map[string]any {
	return map[string]any{"kind": "MULTIPART", "file_index": int64(i)}
}

// jpegOf is a picture that is no PNG.
func jpegOf(h *installation) []byte {
	h.Helper()
	img, err := png.Decode(bytes.NewReader(generationtest.PNG(1)))
	h.OK(err)
	var b bytes.Buffer
	h.OK(jpeg.Encode(&b, img, nil))
	return b.Bytes()
}

// result makes a library item of an account.
func result(h *installation, who principal.Principal) string {
	h.Helper()
	r := h.Create(h.Draft(who, "free"))
	h.OK(h.Runs.EndRun(h.Context(), h.Claim("worker"), generation.Outcome{State: run.Succeeded, Results: h.Results(1)}))
	rec, err := h.Runs.GetStatus(h.Context(), who.AccountID, r.ID)
	h.OK(err)
	return r.LibraryID + ":" + rec.Outputs[0].ID
}

// TestReferencesOfOthers tries every pair of account and owner. What is
// another's is as if it had never been.
func TestReferencesOfOthers(t *testing.T) {
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *installation) {
		anna, bert, team := h.Person(0), h.Person(0), h.Team(0)
		callers := []principal.Principal{own(anna), own(bert), in(anna, team)}
		upload, item := map[string]string{}, map[string]string{}
		for _, c := range callers {
			upload[c.AccountID], item[c.AccountID] = h.Upload(c.PersonID, c.AccountID, generationtest.PNG(1)), result(h, c)
		}
		problem := func(c principal.Principal, value map[string]any) string {
			h.Helper()
			d := h.Draft(c, "media")
			d.Inputs["picture"] = value
			before := h.Rows()
			_, err := create(h, d)
			if err == nil {
				return ""
			}
			f := refused(h, "reference", err, fault.Invalid)
			if len(f.Fields) != 1 || f.Fields[0].Path != "inputs.picture" || h.Rows() != before {
				h.Errorf("fields = %+v", f.Fields)
			}
			return f.Message + f.Fields[0].Message
		}
		shape := ids.New() + item[anna][20:]
		for _, c := range callers {
			none, nothing := problem(c, ref("UPLOAD_REF", ids.New())), problem(c, ref("LIBRARY_REF", shape))
			for _, owner := range callers {
				up, it := problem(c, ref("UPLOAD_REF", upload[owner.AccountID])), problem(c, ref("LIBRARY_REF", item[owner.AccountID]))
				if c.AccountID == owner.AccountID {
					if up != "" || it != "" {
						h.Errorf("one's own: %q, %q", up, it)
					}
				} else if up != none || it != nothing || none == "" || nothing == "" {
					h.Errorf("another's: %q and %q, want %q and %q", up, it, none, nothing)
				}
			}
			if a, b := problem(c, ref("LIBRARY_REF", "x")), problem(c, ref("UPLOAD_REF", "x")); a != nothing || b != none {
				h.Errorf("no reference at all: %q and %q", a, b)
			}
		}
		h.OK(h.Library.DeleteUpload(h.Context(), principal.Principal{PersonID: anna, AccountID: anna}, anna, upload[anna]))
		if got := problem(own(anna), ref("UPLOAD_REF", upload[anna])); got != problem(own(anna), ref("UPLOAD_REF", ids.New())) || got == "" {
			h.Errorf("a deleted upload: %q", got)
		}
	})
}

func TestFilesThatDoNotFit(t *testing.T) {
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *installation) {
		anna := h.Person(0)
		picture, photo, sound := h.Upload(anna, anna, generationtest.PNG(1)), h.Upload(anna, anna, jpegOf(h)), h.Upload(anna, anna, generationtest.WAV())
		for _, c := range []struct {
			field string
			value any
			path  string // "": it fits
		}{
			{"picture", ref("UPLOAD_REF", picture), ""},
			{"picture", ref("UPLOAD_REF", photo), "inputs.picture"},
			{"picture", ref("UPLOAD_REF", sound), "inputs.picture"},
			{"pictures", []any{ref("UPLOAD_REF", picture), ref("UPLOAD_REF", photo)}, ""},
			{"pictures", []any{ref("UPLOAD_REF", photo), ref("UPLOAD_REF", sound)}, "inputs.pictures.1"},
			{"sound", ref("UPLOAD_REF", sound), ""},
			{"sound", ref("UPLOAD_REF", picture), "inputs.sound"},
		} {
			d := h.Draft(own(anna), "media")
			d.Inputs[c.field] = c.value
			_, err := create(h, d)
			if c.path == "" {
				h.OK(err)
			} else if f := refused(h, c.field, err, fault.Invalid); len(f.Fields) != 1 || f.Fields[0].Path != c.path {
				h.Errorf("%s: %+v, want %s", c.field, f.Fields, c.path)
			}
		}
	})
}

// TestFilesOfARequest has files come with the run itself.
func TestFilesOfARequest(t *testing.T) {
	generationtest.EachInstallation(t, func(s *generation.Settings) { generationtest.Unlimited(s); s.InputFiles = 3 }, func(h *installation) {
		anna := h.Person(0)
		d := h.Draft(own(anna), "media")
		d.Files = []ingest.StoredFile{h.Take(generationtest.PNG(1)), h.Take(generationtest.PNG(2)), h.Take(generationtest.PNG(3))}
		d.Inputs["pictures"] = []any{part(2), part(0)}
		_, err := create(h, d)
		refused(h, "a part that nobody names", err, fault.Invalid)
		d.Inputs["picture"] = part(1)
		r := h.Create(d)
		var inputs []run.Input
		h.Do(func(tx *sqldb.Tx) error {
			_, in, ok, err := run.Claim(h.Context(), tx, run.ClaimOptions{Engine: generationtest.Engine, Worker: "worker", Lease: time.Minute})
			if inputs = in; !ok {
				h.Error("nothing to claim")
			}
			return err
		})
		want := []run.Input{{Field: "picture", AssetID: d.Files[1].Asset.ID}, {Field: "pictures", AssetID: d.Files[2].Asset.ID}, {Field: "pictures", Index: 1, AssetID: d.Files[0].Asset.ID}}
		if len(inputs) != 3 || inputs[0] != want[0] || inputs[1] != want[1] || inputs[2] != want[2] {
			h.Errorf("inputs = %+v, want %+v", inputs, want)
		}
		if n := h.Count(`SELECT count(*) FROM asset WHERE account_id = $1`, anna); n != 3 {
			h.Errorf("%d files are hers", n)
		}
		if want := `{"picture":{"file_index":1,"kind":"MULTIPART"},"pictures":[{"file_index":2,"kind":"MULTIPART"},{"file_index":0,"kind":"MULTIPART"}]}`; r.Inputs != want {
			h.Errorf("inputs = %s, want %s", r.Inputs, want)
		}

		d = h.Draft(own(anna), "media")
		d.Files = []ingest.StoredFile{h.Take(generationtest.PNG(4)), h.Take(generationtest.PNG(5)), h.Take(generationtest.PNG(6)), h.Take(generationtest.PNG(7))}
		d.Inputs["pictures"] = []any{part(0), part(1), part(2), part(3)}
		before := h.Rows()
		_, err = create(h, d)
		if f := refused(h, "one too many", err, fault.TooManyInputFiles); f.Details["limit"] != 3 || h.Rows() != before {
			h.Errorf("details = %v", f.Details)
		}
		up := h.Upload(anna, anna, generationtest.PNG(8))
		d.Files, d.Inputs["pictures"] = nil, []any{ref("UPLOAD_REF", up), ref("UPLOAD_REF", up), ref("UPLOAD_REF", up), ref("UPLOAD_REF", up)}
		_, err = create(h, d)
		refused(h, "one reference too many", err, fault.TooManyInputFiles)
		d.Inputs["pictures"] = []any{ref("UPLOAD_REF", up), ref("UPLOAD_REF", up), ref("UPLOAD_REF", up)}
		h.Create(d)
	})
}

func TestWhatComesBesideTheInputs(t *testing.T) {
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *installation) {
		anna := h.Person(0)
		for _, c := range []struct {
			path string // of the problem, "": none
			set  func(*generation.Draft)
		}{
			{"", func(d *generation.Draft) { d.Metadata = strings.Repeat("x", 8191) }},
			{"", func(d *generation.Draft) { d.Metadata = strings.Repeat("x", 8192) }},
			{"metadata", func(d *generation.Draft) { d.Metadata = strings.Repeat("x", 8193) }},
			{"metadata", func(d *generation.Draft) { d.Metadata = strings.Repeat("ü", 4097) }},
			{"", func(d *generation.Draft) { d.Plugin = strings.Repeat("ü", 64) }},
			{"plugin", func(d *generation.Draft) { d.Plugin = strings.Repeat("x", 65) }},
			{"plugin", func(d *generation.Draft) { d.Plugin = "a\nb" }},
			{"plugin", func(d *generation.Draft) { d.Plugin = "a\x7f" }},
			{"", func(d *generation.Draft) { d.WebhookURL = "https://example.com/hook?a=b" }},
			{"", func(d *generation.Draft) { d.WebhookURL = "https://127.0.0.1:8443/" }}, // the operator allows it
			{"webhook_url", func(d *generation.Draft) { d.WebhookURL = "https://10.0.0.1/" }},
			{"webhook_url", func(d *generation.Draft) { d.WebhookURL = "http://example.com/" }},
		} {
			d := h.Draft(own(anna), "free")
			c.set(&d)
			created, err := create(h, d)
			if c.path == "" {
				h.OK(err)
				if r := h.Run(created.Run.ID); r.Metadata != d.Metadata || r.Plugin != d.Plugin || r.WebhookURL != d.WebhookURL {
					h.Errorf("kept %+v", r)
				}
			} else if f := refused(h, c.path, err, fault.Invalid); len(f.Fields) != 1 || f.Fields[0].Path != c.path {
				h.Errorf("fields = %+v, want %s", f.Fields, c.path)
			}
		}
	})
}

// TestWhatIsKept looks at a run with defaults, a seed of its own and a history.
func TestWhatIsKept(t *testing.T) {
	generationtest.EachInstallation(t, generationtest.Unlimited, func(h *installation) {
		anna := h.Person(0)
		d := h.Draft(own(anna), "free")
		d.Inputs = map[string]any{"prompt": "a fox", "seed": int64(1<<32 - 1)}
		r := h.Create(d)
		if r.Seed != 1<<32-1 || r.Prompt != "a fox" || r.Inputs != `{"prompt":"a fox","seed":4294967295,"strength":1.5}` || r.Estimated != 0 || r.PollAfter != 2*time.Second {
			h.Errorf("run = %+v", r)
		}
		delete(d.Inputs, "seed")
		a, b := h.Create(d).Seed, h.Create(d).Seed
		if a == b || a < 0 || a >= 1<<32 {
			h.Errorf("seeds %d and %d", a, b)
		}
		for _, c := range []struct {
			ms              int64
			estimated, poll time.Duration
		}{
			{1, time.Second, time.Second}, {1499, time.Second, 2 * time.Second}, {1500, 2 * time.Second, 2 * time.Second},
			{2001, 2 * time.Second, 3 * time.Second}, {10_000, 10 * time.Second, 10 * time.Second}, {600_000, 600 * time.Second, 10 * time.Second},
		} {
			h.Exec(`UPDATE tool SET average_ms = $1`, c.ms)
			h.Exec(`UPDATE catalog SET version = version + 1`)
			_, err := h.Catalog.RefreshSnapshot(h.Context())
			h.OK(err)
			r := h.Create(h.Draft(own(anna), "free"))
			if r.Estimated != c.estimated || r.PollAfter != c.poll {
				h.Errorf("after %d ms: %v and %v, want %v and %v", c.ms, r.Estimated, r.PollAfter, c.estimated, c.poll)
			}
		}
	})
}
