package comfyuitest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/internal/engine/enginetest"
)

func call(t *testing.T, s *comfyuitest.Server, method, path, kind, body string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	_ = json.Unmarshal(b, &v) // some answers are empty
	return res.StatusCode, v
}

func post(t *testing.T, s *comfyuitest.Server, path, body string) (int, map[string]any) {
	t.Helper()
	return call(t, s, "POST", path, "application/json", body)
}

func upload(t *testing.T, s *comfyuitest.Server, name, content, overwrite string) string {
	t.Helper()
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	w, err := form.CreateFormFile("image", name)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, content)
	_ = form.WriteField("overwrite", overwrite)
	_ = form.Close()
	_, v := call(t, s, "POST", "/api/upload/image", form.FormDataContentType(), b.String())
	got, _ := v["name"].(string)
	return got
}

func TestUploadsAreRenamedUnlessTheyAreTheSame(t *testing.T) {
	t.Parallel()
	s := comfyuitest.Start(t, comfyuitest.Options{})
	for _, tt := range []struct{ content, overwrite, want string }{
		{"one", "", "a.png"}, {"one", "", "a.png"}, {"two", "", "a (1).png"}, {"three", "true", "a.png"}, {"one", "", "a (2).png"},
	} {
		if got := upload(t, s, "a.png", tt.content, tt.overwrite); got != tt.want {
			t.Errorf("%s: name = %q, want %q", tt.content, got, tt.want)
		}
	}
}

const hello = `{"1":{"class_type":"PrimitiveStringMultiline","inputs":{"value":"hello"}},"2":{"class_type":"PreviewAny","inputs":{"source":["1",0]}}}`

func TestPromptsThatAreRefused(t *testing.T) {
	t.Parallel()
	s := comfyuitest.Start(t, comfyuitest.Options{})
	for body, want := range map[string]string{
		`{}`: "no_prompt",
		`{"prompt":{"1":{"class_type":"Nope","inputs":{}}}}`:                            "invalid_prompt",
		`{"prompt":{"1":{"class_type":"LoadImage","inputs":{"image":"x"}}}}`:            "prompt_no_outputs",
		`{"prompt":{"1":{"class_type":"PreviewImage","inputs":{}}}}`:                    "prompt_outputs_failed_validation",
		`{"prompt":{"1":{"class_type":"PreviewImage","inputs":{"images":["9",0]}}}}`:    "prompt_outputs_failed_validation",
		`{"prompt":{"1":{"class_type":"PreviewImage","inputs":{"images":["1"]}}}}`:      "prompt_outputs_failed_validation",
		`{"prompt":{"1":{"class_type":"PreviewImage","inputs":{"images":"a string"}}}}`: "prompt_outputs_failed_validation",
		`{"prompt":` + hello + `,"prompt_id":"mine"}`:                                   "invalid_prompt_id",
		`{"prompt":` + hello + `,"prompt_id":"C56A4180-65AA-42EC-A945-5FD21DEC0538"}`:   "invalid_prompt_id",
	} {
		status, v := post(t, s, "/prompt", body)
		e, _ := v["error"].(map[string]any)
		if status != 400 || e["type"] != want {
			t.Errorf("%s: %d %v, want %s", body, status, e["type"], want)
		}
	}
}

func TestAJobsLife(t *testing.T) {
	t.Parallel()
	s := comfyuitest.Start(t, comfyuitest.Options{})
	const id = "c56a4180-65aa-42ec-a945-5fd21dec0538"
	if status, _ := call(t, s, "GET", "/api/jobs/"+id, "", ""); status != 404 {
		t.Errorf("before: status = %d, want 404", status)
	}
	if status, v := post(t, s, "/api/prompt", `{"prompt":`+hello+`,"client_id":"x","prompt_id":"`+id+`"}`); status != 200 || v["prompt_id"] != id {
		t.Fatalf("prompt = %d %v", status, v)
	}
	for end := time.Now().Add(10 * time.Second); !s.Idle() && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if _, v := call(t, s, "GET", "/api/jobs/"+id, "", ""); v["status"] != "completed" {
		t.Errorf("job = %v", v)
	}
	if _, v := post(t, s, "/api/jobs/"+id+"/cancel", "{}"); v["cancelled"] != false {
		t.Errorf("cancel = %v, want that there was nothing to cancel", v)
	}
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	if _, v := call(t, s, "GET", "/history/"+id, "", ""); len(v) != 0 {
		t.Errorf("history = %v, want it forgotten", v)
	}
	old := comfyuitest.Start(t, comfyuitest.Options{NoJobs: true})
	if status, _ := post(t, old, "/api/jobs/"+id+"/cancel", "{}"); status != 405 {
		t.Errorf("an old server: status = %d, want 405", status)
	}
}

// picture is a workflow that saves an uploaded picture.
const picture = `{"1":{"class_type":"LoadImage","inputs":{"image":"NAME"}},"2":{"class_type":"SaveImage","inputs":{"images":["1",0],"filename_prefix":"p"MORE}}}`

// TestTheCacheReportsOldNames has equal nodes answered from the cache, with the
// name of the first file, although that file is gone or is another prompt's.
func TestTheCacheReportsOldNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		prompts int // in the cache
		cached  bool
	}{{1, false}, {10, true}} {
		s := comfyuitest.Start(t, comfyuitest.Options{CachedPrompts: tt.prompts})
		save := func(name, more string) (file any, cached bool) {
			t.Helper()
			graph := strings.NewReplacer("NAME", name, "MORE", more).Replace(picture)
			_, v := post(t, s, "/prompt", `{"prompt":`+graph+`,"client_id":"x"}`)
			id, _ := v["prompt_id"].(string)
			for end := time.Now().Add(time.Minute); !s.Idle() && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			_, history := call(t, s, "GET", "/history/"+id, "", "")
			b, _ := json.Marshal(history[id])
			var entry struct {
				Outputs map[string]struct{ Images []struct{ Filename string } }
				Status  struct{ Messages [][2]json.RawMessage }
			}
			if err := json.Unmarshal(b, &entry); err != nil || len(entry.Outputs["2"].Images) != 1 {
				t.Fatalf("history = %s, %v", b, err)
			}
			return entry.Outputs["2"].Images[0].Filename, strings.Contains(string(entry.Status.Messages[1][1]), `"2"`)
		}
		upload(t, s, "a.png", string(enginetest.StripedPNG(8, 8, "a")), "")
		upload(t, s, "b.png", string(enginetest.StripedPNG(8, 8, "b")), "")
		first, _ := save("a.png", "")
		if again, cached := save("a.png", ""); again != first || !cached {
			t.Errorf("a repeat: %v, cached %v; want %v from the cache", again, cached, first)
		}
		if fresh, cached := save("a.png", `,"unused":1`); fresh == first || cached {
			t.Errorf("with an unused input: %v, cached %v; want a new file", fresh, cached)
		}
		s.EmptyOutputs()
		if other, _ := save("b.png", ""); other != first {
			t.Errorf("after the folder was emptied: %v, want the name %v again", other, first)
		}
		if again, cached := save("a.png", ""); cached != tt.cached || (again == first) != tt.cached {
			t.Errorf("%d prompts in the cache: %v, cached %v, want %v", tt.prompts, again, cached, tt.cached)
		}
	}
}
