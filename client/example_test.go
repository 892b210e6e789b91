package client_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"atelier/client"
)

// startExampleService starts a small stand-in of a service, so that the examples
// run. In a program, the URL is that of your installation.
func startExampleService() *httptest.Server {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	answer := func(pattern, text string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
	}
	const picture = "a picture"
	digest := sha256.Sum256([]byte(picture))
	record := `{"request_id": "r1", "status": "succeeded", "tokens_charged": 2, "outputs": [{"id": "o1", "url": "` + server.URL +
		`/media/o1.png", "mime_type": "image/png", "size_bytes": 9, "sha256": "` + hex.EncodeToString(digest[:]) + `"}]}`
	answer("GET /media/o1.png", picture)
	answer("GET /api/v2/tools", `{"data": [{"slug": "gradient", "name": "Gradient"}, {"slug": "sketch", "name": "Sketch"}]}`)
	answer("GET /api/v2/tools/gradient", `{"id": "PagW53lsaa2KiGgg5wR4", "slug": "gradient", "tool_fields_hash": "v1:x", "fields": [{"isField": true, "fieldKey": "seed", "type": "SEED"}]}`)
	answer("GET /api/v2/tools/sketch", `{"id": "Qm3vT8sLw1ZrYb6KdXf9", "slug": "sketch", "tool_fields_hash": "v1:y"}`)
	answer("POST /api/v2/generate", `{"request_id": "r1", "status": "pending", "retry_after_seconds": 1}`)
	answer("POST /api/v2/generate/preview-cost", `{"total_tokens": 2, "tokens_per_result": 2, "can_run": true}`)
	answer("GET /api/v2/generate/r1", record)
	answer("GET /api/v2/generate/r1/events", "event: progress\ndata: {\"progress\": 0.5, \"stage\": \"running\"}\n\nevent: done\ndata: "+record+"\n\n")
	answer("POST /api/v2/uploads", `{"id": "u1", "name": "fox.png"}`)
	answer("GET /api/v2/library", `{"data": [{"id": "o1", "prompt": "a red fox"}, {"id": "o2", "prompt": "a desert"}]}`)
	answer("GET /api/v2/me", `{"user": {"uid": "p1", "email": "anna@studio.example"}}`)
	answer("POST /api/v2/auth/device/start", `{"device_code": "s", "user_code": "BCDF-GHJK", "verification_url": "https://atelier.example/device?code=BCDF-GHJK", "expires_in": 600, "interval": 0}`)
	answer("POST /api/v2/auth/device/poll", `{"tokens": {"id_token": "i", "refresh_token": "r", "expires_at": 4102444800}, "user": {"uid": "p1", "email": "anna@studio.example"}}`)
	answer("POST /api/v2/auth/token/refresh", `{"id_token": "i2", "refresh_token": "r2", "expires_at": 4102444800}`)
	mux.HandleFunc("DELETE /api/v2/library/o3", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error": {"code": "NOT_FOUND", "message": "There is no such result.", "trace_id": "4bf92f35"}}`)
	})
	return server
}

// A run from its start to a file on the disk.
func Example() {
	service := startExampleService()
	defer service.Close()
	ctx := context.Background()

	c, err := client.New(client.Options{URL: service.URL, Token: os.Getenv("ATELIER_TOKEN")})
	if err != nil {
		log.Fatal(err)
	}
	run, err := c.Runs.Create(ctx, client.RunRequest{
		Tool:   "gradient",
		Inputs: map[string]any{"seed": 7},
	})
	if err != nil {
		log.Fatal(err)
	}
	run, err = run.Wait(ctx, client.Watch{})
	if err != nil {
		log.Fatal(err)
	}
	if err := run.Err(); err != nil {
		log.Fatal(err)
	}
	path := filepath.Join(os.TempDir(), "example-gradient.png")
	defer os.Remove(path)
	if err := c.Download(ctx, run.Outputs[0].File(), path, nil); err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Status, run.TokensCharged)
	// Output: succeeded 2
}

// Tools and their forms.
func ExampleToolsCalls_All() {
	service := startExampleService()
	defer service.Close()
	ctx := context.Background()
	c, err := client.New(client.Options{URL: service.URL, Token: os.Getenv("ATELIER_TOKEN")})
	if err != nil {
		log.Fatal(err)
	}

	for tool, err := range c.Tools.All(ctx, client.ToolsListParams{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tool.Slug)
	}
	tool, err := c.Tools.Find(ctx, "gradient")
	if err != nil {
		log.Fatal(err)
	}
	for _, field := range tool.InputFields() {
		fmt.Println(field.FieldKey, field.Type)
	}
	// Output:
	// gradient
	// sketch
	// seed SEED
}

// Files go along with the run. Uploads and earlier results are named by their
// ids.
func ExampleRunsCalls_Create() {
	service := startExampleService()
	defer service.Close()
	ctx := context.Background()
	c, err := client.New(client.Options{URL: service.URL, Token: os.Getenv("ATELIER_TOKEN")})
	if err != nil {
		log.Fatal(err)
	}

	request := client.RunRequest{
		Tool: "sketch",
		Inputs: map[string]any{
			"prompt":  "a red fox in the snow",
			"picture": client.FileOf("fox.png", []byte("…")), // or client.FileAt("fox.png")
			"style":   client.LibraryInput("Qm3vT8sLw1ZrYb6KdXf9:0b5f8a4e-6c1d-4f0e-9a57-3d2c1b0a9e8f"),
		},
		Metadata: map[string]any{"shot": 12},
	}
	price, err := c.Runs.PreviewCost(ctx, request)
	if err != nil {
		log.Fatal(err)
	}
	run, err := c.Runs.Create(ctx, request)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(price.TotalTokens, run.RequestID, run.Status)
	// Output: 2 r1 pending
}

// The progress of a run while Wait waits.
func ExampleRun_Wait() {
	service := startExampleService()
	defer service.Close()
	ctx := context.Background()
	c, err := client.New(client.Options{URL: service.URL, Token: os.Getenv("ATELIER_TOKEN")})
	if err != nil {
		log.Fatal(err)
	}

	run, err := c.Runs.Create(ctx, client.RunRequest{Tool: "gradient"})
	if err != nil {
		log.Fatal(err)
	}
	run, err = run.Wait(ctx, client.Watch{
		Progress: func(p client.RunProgress) {
			if p.Progress != nil {
				fmt.Printf("%s %.0f%%\n", p.Stage, *p.Progress*100)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Status)
	// Output:
	// running 50%
	// succeeded
}

// Uploads are sent as they are read; large ones are resumed after a failure.
func ExampleUploadsCalls_Create() {
	service := startExampleService()
	defer service.Close()
	c, err := client.New(client.Options{URL: service.URL, Token: os.Getenv("ATELIER_TOKEN")})
	if err != nil {
		log.Fatal(err)
	}

	upload, err := c.Uploads.Create(context.Background(), client.UploadRequest{
		File:     client.FileOf("fox.png", []byte("a picture")), // or client.FileAt("fox.png")
		Progress: func(done, total int64) { fmt.Printf("%d of %d bytes\n", done, total) },
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(upload.ID)
	// Output:
	// 9 of 9 bytes
	// u1
}

// A file that was uploaded or generated, with the progress of its download. The
// file appears under its name once it is whole and its hash is right.
func ExampleClient_Download() {
	service := startExampleService()
	defer service.Close()
	ctx := context.Background()
	c, err := client.New(client.Options{URL: service.URL, Token: os.Getenv("ATELIER_TOKEN")})
	if err != nil {
		log.Fatal(err)
	}

	run, err := c.Runs.Get(ctx, "r1")
	if err != nil {
		log.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "results")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	for _, output := range run.Outputs {
		path := filepath.Join(folder, output.ID+".png")
		err := c.Download(ctx, output.File(), path, func(done, total int64) { fmt.Printf("%d of %d bytes\n", done, total) })
		if errors.Is(err, client.ErrExpired) {
			continue // the service keeps results for a limited time
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(filepath.Base(path))
	}
	// Output:
	// 9 of 9 bytes
	// o1.png
}

// Results of the library, page by page.
func ExampleLibraryCalls_All() {
	service := startExampleService()
	defer service.Close()
	c, err := client.New(client.Options{URL: service.URL, Token: os.Getenv("ATELIER_TOKEN")})
	if err != nil {
		log.Fatal(err)
	}

	for item, err := range c.Library.All(context.Background(), client.LibraryListParams{Type: client.MediumImg}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(item.ID, *item.Prompt)
	}
	// Output:
	// o1 a red fox
	// o2 a desert
}

// Codes tell what to do about an error.
func ExampleError() {
	service := startExampleService()
	defer service.Close()
	c, err := client.New(client.Options{URL: service.URL, Token: os.Getenv("ATELIER_TOKEN")})
	if err != nil {
		log.Fatal(err)
	}

	err = c.Library.Delete(context.Background(), "o3")
	if e, ok := errors.AsType[*client.Error](err); ok && e.Code == client.CodeNotFound {
		fmt.Println(e.Message, e.TraceID)
	}
	// Output: There is no such result. 4bf92f35
}

// A sign-in that the person approves in a browser. The tokens are kept in a
// file that only its owner can read.
func ExampleClient_StartDeviceLogin() {
	service := startExampleService()
	defer service.Close()
	ctx := context.Background()
	path := filepath.Join(os.TempDir(), "example-tokens.json")
	defer os.Remove(path)

	store := client.NewFileStore(path)
	c, err := client.New(client.Options{URL: service.URL, Store: store})
	if err != nil {
		log.Fatal(err)
	}
	login, err := c.StartDeviceLogin(ctx, "my-app")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("Open", login.VerificationURL, "and compare the code", login.UserCode)
	result, err := login.Wait(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := store.Save(ctx, result.Tokens); err != nil {
		log.Fatal(err)
	}

	me, err := c.Me.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("Signed in as", me.User.Email)
	// Output:
	// Open https://atelier.example/device?code=BCDF-GHJK and compare the code BCDF-GHJK
	// Signed in as anna@studio.example
}

// secretStore keeps tokens in a place of the program's own, here a map.
type secretStore struct {
	client.MemoryStore // its Lock, which excludes other goroutines

	mu      sync.Mutex
	secrets map[string]string
}

// Load implements client.TokenStore.
func (s *secretStore) Load(context.Context) (client.Tokens, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var t client.Tokens
	text, found := s.secrets["atelier"]
	if !found {
		return t, client.ErrSignedOut
	}
	return t, json.Unmarshal([]byte(text), &t)
}

// Save implements client.TokenStore.
func (s *secretStore) Save(_ context.Context, t client.Tokens) error {
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets["atelier"] = string(text)
	return nil
}

// A store of the program's own. The client loads the tokens, refreshes them when
// they expire, and saves what the service returns.
func ExampleTokenStore() {
	service := startExampleService()
	defer service.Close()
	ctx := context.Background()

	store := &secretStore{secrets: map[string]string{}}
	c, err := client.New(client.Options{URL: service.URL, Store: store})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.Me.Get(ctx); errors.Is(err, client.ErrSignedOut) {
		fmt.Println("Sign in first")
	}
	if err := store.Save(ctx, client.Tokens{RefreshToken: "from a sign-in"}); err != nil {
		log.Fatal(err)
	}
	me, err := c.Me.Get(ctx)
	if err != nil {
		log.Fatal(err)
	}
	tokens, err := store.Load(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(me.User.Email, tokens.RefreshToken)
	// Output:
	// Sign in first
	// anna@studio.example r2
}

// Webhooks in a server of any kind: it needs the headers and the body as they
// arrived.
func ExampleVerifier_Verify() {
	verifier, err := client.NewVerifier("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") // from c.Webhooks.GetSecret
	if err != nil {
		log.Fatal(err)
	}

	// The service sends these.
	body := []byte(`{"type": "generation.failed", "data": {"request_id": "r1", "error": {"code": "TIMED_OUT", "message": "The run took too long."}}}`)
	header := signedHeader("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", time.Now(), string(body))

	if err := verifier.Verify(header, body); err != nil {
		log.Fatal(err) // answer 401
	}
	event, err := client.ParseWebhook(header, body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(event.Type, event.Run.Error)

	body[0] = ' '
	fmt.Println(errors.Is(verifier.Verify(header, body), client.ErrWebhook))
	// Output:
	// generation.failed TIMED_OUT: The run took too long.
	// true
}

// A handler that receives the events of runs.
func ExampleVerifier_Handler() {
	verifier, err := client.NewVerifier("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") // from c.Webhooks.GetSecret
	if err != nil {
		log.Fatal(err)
	}
	handler := verifier.Handler(func(_ *http.Request, event client.ReceivedWebhook) error {
		if event.Run != nil {
			fmt.Println(event.Type, event.Run.RequestID)
		}
		return nil
	})

	// The service sends this.
	body := `{"type": "generation.succeeded", "data": {"request_id": "r1"}}`
	request := httptest.NewRequest(http.MethodPost, "/webhooks", strings.NewReader(body))
	request.Header = signedHeader("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", time.Now(), body)
	handler.ServeHTTP(httptest.NewRecorder(), request)
	// Output: generation.succeeded r1
}
