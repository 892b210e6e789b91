package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"atelier/internal/testkit/watch"
	"atelier/internal/web/api/apitest"
	"atelier/test/program"
)

// delivery is a webhook as it arrived.
type delivery struct {
	header http.Header
	body   []byte
}

// receiver is a TLS server that takes webhooks, and the file with who vouches
// for it.
func receiver(t *testing.T) (address, roots string, came <-chan delivery) {
	t.Helper()
	ch := make(chan delivery, 100)
	server, roots := program.Receiver(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		ch <- delivery{r.Header, body}
		w.WriteHeader(http.StatusNoContent)
	})
	return server.URL + "/hook", roots, ch
}

// plainPicture makes a PNG of one colour.
func plainPicture(t *testing.T, width, height int, c color.NRGBA) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range m.Pix {
		m.Pix[i] = [4]uint8{c.R, c.G, c.B, c.A}[i%4]
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// form sends a multipart create.
func (n *node) form(payload string, header []string, files ...[]byte) answer {
	n.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	write := func(name, file, kind string, data []byte) {
		h := textproto.MIMEHeader{"Content-Type": {kind}}
		disposition := `form-data; name="` + name + `"`
		if file != "" {
			disposition += `; filename="` + file + `"`
		}
		h.Set("Content-Disposition", disposition)
		part, err := w.CreatePart(h)
		if err == nil {
			_, err = part.Write(data)
		}
		if err != nil {
			n.t.Fatal(err)
		}
	}
	write("payload", "", "application/json", []byte(payload))
	for i, f := range files {
		write("files", fmt.Sprintf("%d.png", i), "image/png", f)
	}
	if err := w.Close(); err != nil {
		n.t.Fatal(err)
	}
	return n.call("POST", "/api/v2/generate", b.String(), append([]string{"Content-Type", w.FormDataContentType()}, header...)...)
}

// follow polls a run as it was told to until it has ended.
func (n *node) follow(created map[string]any) map[string]any {
	n.t.Helper()
	wait := created["retry_after_seconds"].(float64)
	for range 60 {
		<-time.After(time.Duration(wait) * time.Second)
		a := n.get(strings.TrimPrefix(created["status_url"].(string), n.url))
		rec := a.want(n.t, 200)
		if rec["status"] != "pending" {
			return rec
		}
		if a.Header.Get("Retry-After") != fmt.Sprint(rec["retry_after_seconds"]) {
			n.t.Errorf("Retry-After is %q and retry_after_seconds %v", a.Header.Get("Retry-After"), rec["retry_after_seconds"])
		}
		wait = rec["retry_after_seconds"].(float64)
	}
	n.t.Fatalf("the run does not end: %v", created)
	return nil
}

// events reads a stream until the event done, and gives the names in order
// without repeats, and the last data.
func (n *node) events(requestID string) (names []string, last map[string]any) {
	n.t.Helper()
	r, err := http.NewRequest("GET", n.url+"/api/v2/generate/"+requestID+"/events", nil)
	if err != nil {
		n.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+n.token)
	res, err := apitest.Client(n.t).Do(r)
	if err != nil {
		n.t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok && (len(names) == 0 || names[len(names)-1] != name) {
			names = append(names, name)
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			last = nil
			if err := json.Unmarshal([]byte(data), &last); err != nil {
				n.t.Fatal(err)
			}
		}
	}
	return names, last
}

// download gets a file by its signed address, without any header.
func download(t *testing.T, address string) []byte {
	t.Helper()
	res, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("GET %s = %d, %v", address, res.StatusCode, err)
	}
	return body
}

// TestOneRun is the day of a script that runs tools: files in, progress,
// result, webhook, library, cancel.
func TestOneRun(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		hook, roots, came := receiver(t)
		tools := t.TempDir()
		write(t, tools, "slow.yaml", "name: Slow\nprice: {type: COST, tokens: 5}\noutput: {type: IMG, mime_types: [image/png]}\nengine: {name: script}\n"+
			"fields:\n  - {key: script, type: TEXT_AREA, label: Script}\n")
		s.env = append(s.env, "ATELIER_WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8", "SSL_CERT_FILE="+roots, "ATELIER_RUNS_PARALLEL=1")
		s.oneWorker = true
		token := s.token("anna@example.com")
		s.do("admin", "grant", "--email", "anna@example.com", "--tokens", "100")
		n := s.serve("--tools", tools)
		n.token = token
		id := n.tools("limit=100", nil)
		detail := func(name string) map[string]any { return n.json("/api/v2/tools/" + id[name]) }
		create := func(name, inputs, more string) string {
			return fmt.Sprintf(`{"tool_id": %q, "tool_fields_hash": %q, "inputs": %s%s}`, id[name], detail(name)["tool_fields_hash"], inputs, more)
		}

		// An upload, and something made before, beside a file of the request.
		upload := n.call("POST", "/api/v2/uploads?name=red.png", string(plainPicture(t, 300, 200, color.NRGBA{200, 30, 30, 255})), "Content-Type", "image/png").want(t, 201)
		first := n.follow(n.call("POST", "/api/v2/generate", create("Gradient", `{"size": {"width": 64, "height": 64}}`, "")).want(t, 202))
		made := first["outputs"].([]any)[0].(map[string]any)
		payload := create("Collage", fmt.Sprintf(`{"width": 256, "pictures": [{"kind": "MULTIPART", "file_index": 0}, {"kind": "UPLOAD_REF", "id": %q}, {"kind": "LIBRARY_REF", "id": %q}]}`,
			upload["id"], made["id"]), fmt.Sprintf(`, "webhook_url": %q, "metadata": {"shot": 12345678901234567890.10}, "plugin": "e2e"`, hook))
		blue := plainPicture(t, 100, 100, color.NRGBA{20, 40, 220, 255})
		a := n.form(payload, []string{"Idempotency-Key", "collage"}, blue)
		created := a.want(t, 202)
		if again := n.form(payload, []string{"Idempotency-Key", "collage"}, blue); again.Header.Get("Idempotent-Replayed") != "true" || !bytes.Equal(again.body, a.body) || again.StatusCode != 202 {
			t.Errorf("the same once more = %d %s", again.StatusCode, again.body)
		}
		names, last := n.events(created["request_id"].(string))
		if len(names) < 2 || names[0] != "status" || names[len(names)-1] != "done" || last["status"] != "succeeded" {
			t.Errorf("events = %v, %v", names, last)
		}
		rec := n.follow(created)
		out := rec["outputs"].([]any)[0].(map[string]any)
		if rec["tokens_charged"] != 1.0 || rec["tokens_held"] != 0.0 || out["width"] != 256.0 || len(rec["outputs"].([]any)) != 1 {
			t.Errorf("record = %v", rec)
		}
		body := download(t, out["url"].(string))
		if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != out["sha256"] {
			t.Error("the file is not what the record says")
		}
		if _, err := png.Decode(bytes.NewReader(download(t, out["url"].(string)))); err != nil {
			t.Errorf("the result is no PNG: %v", err)
		}

		// The webhook, verified as receivers do it.
		secret := n.json("/api/v2/webhook-secret")["secret"].(string)
		verifier, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case d := <-came:
			if err := verifier.Verify(d.body, d.header); err != nil {
				t.Errorf("verify = %v", err)
			}
			if !bytes.Contains(d.body, []byte(`12345678901234567890.10`)) || !bytes.Contains(d.body, []byte(`"type":"generation.succeeded"`)) {
				t.Errorf("event = %s", d.body)
			}
		case <-time.After(time.Minute):
			t.Fatal("no webhook came")
		}

		// The library.
		items := n.json("/api/v2/library")["data"].([]any)
		if len(items) != 2 || items[0].(map[string]any)["id"] != out["id"] {
			t.Errorf("library = %v", items)
		}

		// Cancel a running run, and one that waits behind it.
		hang := `{"script": "[{\"progress\": 0.25}, {\"hang\": true}]"}`
		running := n.call("POST", "/api/v2/generate", create("Slow", hang, "")).want(t, 202)["request_id"].(string)
		waiting := n.call("POST", "/api/v2/generate", create("Slow", hang, "")).want(t, 202)["request_id"].(string)
		stage := func(requestID string) string {
			for _, one := range n.json("/api/v2/generations?status=pending")["data"].([]any) {
				if rec := one.(map[string]any); rec["request_id"] == requestID {
					return rec["stage"].(string)
				}
			}
			return ""
		}
		watch.Until(t, "the first runs and the second waits", func() bool { return stage(running) == "running" && stage(waiting) == "queued" })
		balance := func() (tokens, held float64) {
			b := n.json("/api/v2/me")["accounts"].([]any)[0].(map[string]any)["balance"].(map[string]any)
			return b["tokens"].(float64), b["held"].(float64)
		}
		if tokens, held := balance(); tokens != 88 || held != 10 {
			t.Errorf("balance = %v and %v held, want 88 and 10", tokens, held)
		}
		if rec := n.call("POST", "/api/v2/generate/"+waiting+"/cancel", "").want(t, 202); rec["status"] != "cancelled" || rec["tokens_charged"] != 0.0 {
			t.Errorf("cancel of a queued run = %v", rec)
		}
		n.call("POST", "/api/v2/generate/"+running+"/cancel", "").want(t, 202)
		watch.Until(t, "the run is cancelled", func() bool { return stage(running) == "" })
		if a := n.call("POST", "/api/v2/generate/"+running+"/cancel", ""); a.want(t, 200)["status"] != "cancelled" {
			t.Errorf("cancel of an ended run = %s", a.body)
		}
		if tokens, held := balance(); tokens != 98 || held != 0 {
			t.Errorf("balance = %v and %v held, want 98 and 0", tokens, held)
		}
		s.check()
		n.stop()

		// A file that rots is found.
		if v := s.do("check", "--files"); fmt.Sprint(v["violations"]) != "[]" {
			t.Errorf("violations: %v", v)
		}
		for key := range s.storedFiles() {
			if strings.HasPrefix(key, "media/") && !strings.Contains(key, "-thumb") {
				s.overwriteFile(key, []byte("rotten"))
				break
			}
		}
		if v, err := s.try("check", "--files"); err == nil {
			t.Errorf("a rotten file passes: %v", v)
		}
	})
}
