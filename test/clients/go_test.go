package clients_test

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/client"
	"atelier/test/program"
	"atelier/test/visitor"
)

// connectGo returns a Go client of the service with an access token.
func connectGo(t *testing.T, s *service) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: s.url(), Token: s.token})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func encodePNG(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestGo uses each part of the Go client with the real program.
func TestGo(t *testing.T) {
	t.Parallel()
	received := make(chan client.ReceivedWebhook, 10)
	var verifier *client.Verifier
	receiver, roots := program.Receiver(t, func(w http.ResponseWriter, r *http.Request) {
		verifier.Handler(func(_ *http.Request, event client.ReceivedWebhook) error {
			received <- event
			return nil
		}).ServeHTTP(w, r)
	})
	s := startService(t,
		"ATELIER_LIMITS_CREATE_PER_MINUTE=1000",
		"SSL_CERT_FILE="+roots,
		"ATELIER_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8",
	)
	c := connectGo(t, s)
	secret, err := c.Webhooks.GetSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if verifier, err = client.NewVerifier(secret.Secret); err != nil {
		t.Fatal(err)
	}

	t.Run("tools", func(t *testing.T) {
		var slugs []string
		for tool, err := range c.Tools.All(t.Context(), client.ToolsListParams{Limit: 3}) {
			if err != nil {
				t.Fatal(err)
			}
			slugs = append(slugs, tool.Slug)
		}
		if !slices.Contains(slugs, "gradient") || !slices.Contains(slugs, "resize") {
			t.Errorf("slugs = %v", slugs)
		}
		tool, err := c.Tools.Find(t.Context(), "resize")
		if err != nil || len(tool.InputFields()) < 3 || tool.InputFields()[0].Type != client.FieldTypeImg {
			t.Errorf("tool = %+v, %v", tool, err)
		}
		_, err = c.Tools.Find(t.Context(), "Resize")
		if missing, ok := errors.AsType[*client.ToolNotFoundError](err); !ok || !slices.Equal(missing.Displayed, []string{"resize"}) {
			t.Errorf("error = %v", err)
		}
		if _, err := c.Tools.Get(t.Context(), "nothing-of-this-name"); !client.HasCode(err, client.CodeNotFound) {
			t.Errorf("error = %v", err)
		}
	})

	t.Run("a run with a file, an event and a webhook", func(t *testing.T) {
		request := client.RunRequest{
			Tool:       "resize",
			Inputs:     map[string]any{"picture": client.FileOf("fox.png", encodePNG(t, 64, 48)), "size": client.SizeInput{Width: 32, Height: 32}},
			WebhookURL: receiver.URL,
			Metadata:   map[string]any{"shot": 12},
			Key:        client.NewKey(),
		}
		price, err := c.Runs.PreviewCost(t.Context(), request)
		if err != nil || !price.CanRun {
			t.Fatalf("price = %+v, %v", price, err)
		}
		run, err := c.Runs.Create(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		again, err := c.Runs.Create(t.Context(), request)
		if err != nil || again.RequestID != run.RequestID {
			t.Errorf("the same key started %+v, %v", again, err)
		}
		statuses := 0
		run, err = run.Wait(t.Context(), client.Watch{Status: func(*client.Run) { statuses++ }})
		if err != nil || run.Err() != nil || len(run.Outputs) != 1 || string(run.Metadata) != `{"shot":12}` {
			t.Fatalf("run = %+v, %v", run, err)
		}
		path := filepath.Join(t.TempDir(), "small.png")
		if err := c.Download(t.Context(), run.Outputs[0].File(), path, nil); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(path); err != nil || int64(len(text)) != run.Outputs[0].SizeBytes {
			t.Errorf("%d bytes, %v", len(text), err)
		}
		select {
		case event := <-received:
			if event.Type != "generation.succeeded" || event.Run.RequestID != run.RequestID {
				t.Errorf("event = %+v", event)
			}
		case <-time.After(time.Minute):
			t.Error("no webhook came")
		}
		full, err := c.Runs.Get(t.Context(), run.RequestID, client.RunIncludeInputs)
		if err != nil || !strings.Contains(string(full.Inputs), `"width":32`) {
			t.Errorf("inputs = %s, %v", full.Inputs, err)
		}
		found := 0
		for r, err := range c.Runs.AllRuns(t.Context(), client.RunsListParams{Status: client.RunStatusSucceeded}) {
			if err != nil {
				t.Fatal(err)
			}
			if r.RequestID == run.RequestID {
				found++
			}
		}
		if found != 1 {
			t.Errorf("the run is listed %d times", found)
		}
		if _, err := run.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
	})

	t.Run("refusals", func(t *testing.T) {
		_, err := c.Runs.Create(t.Context(), client.RunRequest{Tool: "gradient", Inputs: map[string]any{"seed": "x", "nothing": 1}})
		if e, ok := errors.AsType[*client.Error](err); !ok || e.Code != client.CodeInvalidRequest || len(e.Fields()) != 2 || e.TraceID == "" {
			t.Errorf("error = %v", err)
		}
		_, err = c.Runs.Create(t.Context(), client.RunRequest{Tool: "gradient", FieldsHash: "v1:old"})
		if !client.HasCode(err, client.CodeToolSchemaStale) {
			t.Errorf("error = %v", err)
		}
	})

	t.Run("uploads", func(t *testing.T) { testGoUploads(t, c) })
	t.Run("library", func(t *testing.T) { testGoLibrary(t, c) })
	t.Run("flows", func(t *testing.T) { testGoFlows(t, c) })
	t.Run("boards", func(t *testing.T) { testGoBoards(t, c) })
	t.Run("device", func(t *testing.T) { testGoDevice(t, s) })
}

// testGoUploads uploads files in one request and in parts.
func testGoUploads(t *testing.T, c *client.Client) {
	t.Helper()
	sound := noiseWAV(rand.New(rand.NewPCG(1, 2)), 9<<20)
	var last int64
	large, err := c.Uploads.Create(t.Context(), client.UploadRequest{
		File:     client.FileOf("noise.wav", sound),
		Progress: func(done, _ int64) { last = done },
	})
	if err != nil || large.SizeBytes != int64(len(sound)) || large.Name != "noise.wav" || last != int64(len(sound)) {
		t.Fatalf("upload = %+v, %v", large, err)
	}
	var back bytes.Buffer
	if err := c.Media.Fetch(t.Context(), large.File(), &back, nil); err != nil || !bytes.Equal(back.Bytes(), sound) {
		t.Errorf("%d bytes, %v", back.Len(), err)
	}

	picture := client.UploadRequest{File: client.FileOf("fox.png", encodePNG(t, 8, 8))}
	small, err := c.Uploads.Create(t.Context(), picture)
	if err != nil || small.Type != client.MediumImg {
		t.Fatalf("upload = %+v, %v", small, err)
	}
	picture.Resumable = true
	picture.Key = client.NewKey()
	first, err := c.Uploads.Create(t.Context(), picture)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.Uploads.Create(t.Context(), picture); err != nil || again.ID != first.ID {
		t.Errorf("the same key made %+v, %v", again, err)
	}
	if err := c.Uploads.Delete(t.Context(), first.ID); err != nil {
		t.Error(err)
	}
	if again, err := c.Uploads.Create(t.Context(), picture); err != nil || again.ID == first.ID {
		t.Errorf("after the file was deleted, its key made %+v, %v", again, err)
	}
	if support, err := c.Uploads.DescribeResumable(t.Context()); err != nil || support.MaxBytes < 1<<20 || len(support.Extensions) == 0 {
		t.Errorf("support = %+v, %v", support, err)
	}
	for _, resumable := range []bool{false, true} {
		_, err := c.Uploads.Create(t.Context(), client.UploadRequest{File: client.FileOf("x.png", []byte("no picture")), Resumable: resumable})
		if !client.HasCode(err, client.CodeUnsupportedMediaType) {
			t.Errorf("resumable %v: %v", resumable, err)
		}
	}
	if err := c.Uploads.Delete(t.Context(), small.ID); err != nil {
		t.Error(err)
	}
	if _, err := c.Uploads.Get(t.Context(), small.ID); !client.HasCode(err, client.CodeNotFound) {
		t.Errorf("error = %v", err)
	}
}

func testGoLibrary(t *testing.T, c *client.Client) {
	t.Helper()
	var items []client.LibraryItem
	for item, err := range c.Library.All(t.Context(), client.LibraryListParams{Limit: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, item)
	}
	if len(items) == 0 {
		t.Fatal("the library is empty")
	}
	if err := c.Library.AddFavorite(t.Context(), items[0].ID); err != nil {
		t.Fatal(err)
	}
	favorites, err := c.Library.List(t.Context(), client.LibraryListParams{Favorited: new(true)})
	if err != nil || len(favorites.Data) != 1 || favorites.Data[0].ID != items[0].ID {
		t.Errorf("favorites = %+v, %v", favorites, err)
	}
	if err := c.Library.Delete(t.Context(), items[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Library.Restore(t.Context(), items[0].ID); err != nil {
		t.Error(err)
	}
}

// testGoFlows checks, saves, changes, runs and deletes a flow, and makes one from
// the history of its result.
func testGoFlows(t *testing.T, c *client.Client) {
	t.Helper()
	draft := client.FlowDraft{
		Name: "From Go",
		Steps: []map[string]any{
			{"id": "draw", "tool": "gradient", "inputs": map[string]any{"size": map[string]any{"value": client.SizeInput{Width: 64, Height: 64}}}},
			{"id": "shrink", "tool": "resized", "inputs": map[string]any{"picture": map[string]any{"step": "draw"}}},
		},
	}
	checked, err := c.Flows.Check(t.Context(), draft)
	if err != nil || len(checked.Problems) != 1 || checked.Problems[0].Path != "steps.1.tool" {
		t.Errorf("checked = %+v, %v", checked, err)
	}
	if _, err := c.Flows.Create(t.Context(), draft); !client.HasCode(err, client.CodeInvalidRequest) {
		t.Errorf("error = %v", err)
	}
	draft.Steps[1]["tool"] = "resize"
	checked, err = c.Flows.Check(t.Context(), draft)
	if err != nil || len(checked.Problems) != 0 || checked.Price == nil || checked.Price.Tokens != 1 {
		t.Errorf("checked = %+v, %v", checked, err)
	}

	flow, err := c.Flows.Create(t.Context(), draft)
	if err != nil {
		t.Fatal(err)
	}
	change := client.FlowChange{Version: flow.Version, Name: "From Go again", Steps: flow.Steps}
	changed, err := c.Flows.Change(t.Context(), flow.ID, change)
	if err != nil || changed.Version != 2 {
		t.Errorf("changed = %+v, %v", changed, err)
	}
	change.Name = "Too late"
	if _, err := c.Flows.Change(t.Context(), flow.ID, change); !client.HasCode(err, client.CodeConflict) {
		t.Errorf("error = %v", err)
	}
	versions, err := c.Flows.ListVersions(t.Context(), flow.ID)
	if err != nil || len(versions.Data) != 2 || versions.Data[1].Name != "From Go" {
		t.Errorf("versions = %+v, %v", versions, err)
	}
	list, err := c.Flows.List(t.Context())
	if err != nil || !slices.ContainsFunc(list.Data, func(f client.FlowSummary) bool { return f.Name == "From Go again" }) {
		t.Errorf("list = %+v, %v", list, err)
	}

	run, err := c.Runs.Create(t.Context(), client.RunRequest{Tool: flow.Slug})
	if err != nil {
		t.Fatal(err)
	}
	run, err = run.Wait(t.Context(), client.Watch{})
	if err != nil || run.Err() != nil || len(run.Outputs) != 1 || len(run.Steps) != 2 {
		t.Fatalf("run = %+v, %v", run, err)
	}
	origin, err := c.Flows.Draft(t.Context(), client.FlowOrigin{LibraryID: run.Outputs[0].ID})
	if err != nil || len(origin.Steps) == 0 {
		t.Errorf("draft = %+v, %v", origin, err)
	}
	if err := c.Flows.Delete(t.Context(), flow.ID); err != nil {
		t.Error(err)
	}
	if _, err := c.Flows.Get(t.Context(), flow.ID); !client.HasCode(err, client.CodeNotFound) {
		t.Errorf("error = %v", err)
	}
}

func testGoBoards(t *testing.T, c *client.Client) {
	t.Helper()
	board, err := c.Boards.Create(t.Context(), client.BoardDraft{Name: "Ideas"})
	if err != nil {
		t.Fatal(err)
	}
	for event, err := range c.Boards.Events(t.Context(), board.ID, "") {
		if err != nil {
			t.Fatal(err)
		}
		var summary client.BoardSummary
		if err := event.Decode(&summary); err != nil || event.Name == "" {
			t.Errorf("event = %+v, %v", event, err)
		}
		break
	}
	if err := c.Boards.Delete(t.Context(), board.ID, client.BoardsDeleteParams{IfMatch: `"1000"`}); !client.HasCode(err, client.CodeConflict) {
		t.Errorf("error = %v", err)
	}
	if err := c.Boards.Delete(t.Context(), board.ID, client.BoardsDeleteParams{}); err != nil {
		t.Error(err)
	}
}

// testGoDevice signs a device in, lets its token be refreshed, and signs it
// out.
func testGoDevice(t *testing.T, s *service) {
	t.Helper()
	v := visitor.New(strings.Replace(s.url(), "127.0.0.1", "localhost", 1)) // the service's own name for itself, which its cookies belong to
	if err := v.SignIn(email, password); err != nil {
		t.Fatal(err)
	}
	in, err := v.Device("")
	if err != nil {
		t.Fatal(err)
	}
	store := client.NewFileStore(filepath.Join(t.TempDir(), "tokens.json"))
	tokens := client.Tokens{RefreshToken: in.Tokens.RefreshToken}
	if err := store.Save(t.Context(), tokens); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{URL: s.url(), Store: store})
	if err != nil {
		t.Fatal(err)
	}
	me, err := c.Me.Get(t.Context())
	if err != nil || me.User.Email != email {
		t.Fatalf("me = %+v, %v", me, err)
	}
	if saved, err := store.Load(t.Context()); err != nil || saved.IDToken == "" {
		t.Errorf("saved = %+v, %v", saved, err)
	}
	if err := c.Devices.Revoke(t.Context(), client.DevicesRevokeParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Me.Get(t.Context()); !client.HasCode(err, client.CodeTokenInvalid) {
		t.Errorf("a revoked device: %v", err)
	}
}
