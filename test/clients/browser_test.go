package clients_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atelier/internal/testkit/browser"
)

// script uses the JavaScript client in a page: it runs a tool, downloads the
// result, and uploads a file in parts.
const script = `(async () => {
	const { Client, uploadInput } = await import("/dist/index.js");
	const client = new Client({ baseURL: %q, token: %q });
	const size = { width: 64, height: 64 };
	const events = [];
	const run = await client.run({ tool: "gradient", inputs: { seed: 5, size } }, { onEvent: (event) => events.push(event.name) });
	const picture = await client.downloads.blob(run.outputs[0]);
	const bitmap = await createImageBitmap(picture);

	const progress = [];
	const file = new File([picture], "picture.png");
	const partBytes = Math.ceil(picture.size / 3);
	const upload = await client.uploads.create(file, { resumable: true, partBytes, onProgress: (p) => progress.push(p.loaded) });
	const resized = await client.run({ tool: "resize", inputs: { picture: uploadInput(upload), size } });
	const sent = await client.run({ tool: "resize", inputs: { picture: file, size } });
	const refused = await client.runs.create({ tool: "gradient", inputs: { nonsense: 1 } }).catch((error) => error);

	return JSON.stringify({
		request_id: run.request_id,
		last_event: events.at(-1),
		size: picture.size,
		is_picture: bitmap.width > 0,
		bytes: Array.from(new Uint8Array(await picture.arrayBuffer()), (b) => b.toString(16).padStart(2, "0")).join(""),
		upload: upload.name,
		progress: progress.length,
		runs: [resized.status, sent.status],
		code: refused.code,
		trace_id: refused.trace_id,
	});
})()`

// TestJavaScriptInBrowser uses the JavaScript client in Chromium, on a page of
// another origin than the service's.
func TestJavaScriptInBrowser(t *testing.T) {
	t.Parallel()
	b := browser.Open(t)
	root, err := root()
	if err != nil {
		t.Fatal(err)
	}
	files := http.NewServeMux()
	files.Handle("GET /dist/", http.FileServerFS(os.DirFS(filepath.Join(root, "clients", "js"))))
	files.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>app</title>")
	})
	pages := httptest.NewServer(files)
	t.Cleanup(pages.Close)
	// Chromium gives pages that were loaded without TLS no WebCrypto, which the
	// client must not need.
	origin := strings.Replace(pages.URL, "127.0.0.1", "app.test", 1)
	s := startService(t, "ATELIER_HTTP_CORS_ORIGINS="+origin)

	b.Goto(origin + "/")
	var said struct {
		RequestID string   `json:"request_id"`
		LastEvent string   `json:"last_event"`
		Size      int      `json:"size"`
		IsPicture bool     `json:"is_picture"`
		Bytes     string   `json:"bytes"`
		Upload    string   `json:"upload"`
		Progress  int      `json:"progress"`
		Runs      []string `json:"runs"`
		Code      string   `json:"code"`
		TraceID   string   `json:"trace_id"`
	}
	text := b.Measure(fmt.Sprintf(script, s.url(), s.token), time.Minute)
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		t.Fatalf("the page says %.500s: %v", text, err)
	}

	run := s.get("/generate/" + said.RequestID)
	output := run["outputs"].([]any)[0].(map[string]any)
	content, err := hex.DecodeString(said.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if hash := sha256.Sum256(content); hex.EncodeToString(hash[:]) != output["sha256"] || float64(said.Size) != output["size_bytes"] {
		t.Errorf("the page has a file of %d bytes with another hash than %v", said.Size, output)
	}
	if said.LastEvent != "done" || !said.IsPicture || run["seed"] != float64(5) {
		t.Errorf("last event %q, picture %v, run %v", said.LastEvent, said.IsPicture, run)
	}
	if said.Upload != "picture.png" || said.Progress != 4 || fmt.Sprint(said.Runs) != "[succeeded succeeded]" {
		t.Errorf("upload %q after %d steps, runs %v", said.Upload, said.Progress, said.Runs)
	}
	if said.Code != "INVALID_REQUEST" || len(said.TraceID) != 32 {
		t.Errorf("error %q with the trace id %q", said.Code, said.TraceID)
	}
	if errors := b.Errors(); len(errors) > 0 {
		t.Errorf("the page logs %v", errors)
	}
}
