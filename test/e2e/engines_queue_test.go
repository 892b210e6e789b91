package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/engine/comfyui/comfyuitest"
	"atelier/internal/testkit/watch"
)

// send puts a prompt into the queue of the model server as another client of
// it does, and returns the prompt's id.
func send(t *testing.T, comfy *comfyuitest.Server, graph string) string {
	t.Helper()
	res, err := http.Post(comfy.URL+"/prompt", "application/json", strings.NewReader(`{"prompt":`+graph+`,"client_id":"somebody"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var accepted struct {
		ID string `json:"prompt_id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&accepted); err != nil || accepted.ID == "" {
		t.Fatalf("prompt = %d, %v", res.StatusCode, err)
	}
	return accepted.ID
}

// limitTools sets the timeout of all tools in a folder.
func limitTools(t *testing.T, folder, timeout string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("manifests = %v, %v", names, err)
	}
	for _, name := range names {
		manifest, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		manifest = regexp.MustCompile(`(?m)^timeout:.*\n`).ReplaceAll(manifest, nil)
		write(t, folder, filepath.Base(name), "timeout: "+timeout+"\n"+string(manifest))
	}
}

// TestAServerFullOfOthersWork has two runs of a tool that may work for two
// seconds wait behind other people's prompts at the model server. The first is
// cancelled there; the second waits for longer than two seconds, and succeeds.
func TestAServerFullOfOthersWork(t *testing.T) {
	each(t, func(t *testing.T, s *site) {
		st := newStudioWith(t, s, time.Millisecond, func(manifests string) { limitTools(t, manifests, "2s") })
		st.comfy.Change(func(f *comfyuitest.Faults) { f.Paused = true })
		others := []string{send(t, st.comfy, portrait), send(t, st.comfy, strings.ReplaceAll(portrait, "blurry", "dark"))}
		watch.Until(t, "somebody else's prompt runs", func() bool { return slices.Equal(st.comfy.Waiting(), others[1:]) })
		waits := func(id string, position float64) {
			t.Helper()
			watch.Until(t, "the run waits at the server", func() bool { // the list may be read as often as one likes
				newest := st.node.json("/api/v2/generations?limit=1")["data"].([]any)[0].(map[string]any)
				return len(st.comfy.Waiting()) == 2 && newest["request_id"] == id && newest["stage"] == "queued" && newest["queue_position"] == position
			})
			run := st.node.json("/api/v2/generate/" + id)
			if run["status"] != "pending" || run["stage"] != "queued" || run["queue_position"] != position || run["progress"] != nil || run["started"] != nil {
				t.Errorf("run = %v, want one that is queued at %v", run, position)
			}
		}

		cancelled := st.begin("a river", 20)
		waits(cancelled.RequestID, 2)
		if _, err := st.client.Runs.Cancel(t.Context(), cancelled.RequestID); err != nil {
			t.Fatal(err)
		}
		if run, _ := st.follow(cancelled.RequestID, nil); run.Status != "cancelled" {
			t.Errorf("run = %+v", run)
		}
		watch.Until(t, "the prompt leaves the server's queue", func() bool { return slices.Equal(st.comfy.Waiting(), others[1:]) })
		st.released(0)

		begun := time.Now()
		patient := st.begin("a red fox", 20)
		waits(patient.RequestID, 2)
		time.Sleep(time.Until(begun.Add(3 * time.Second))) // longer than the tool may work
		waits(patient.RequestID, 2)
		st.comfy.Change(func(f *comfyuitest.Faults) { f.Paused = false })
		run, _ := st.follow(patient.RequestID, nil)
		if run.Status != "succeeded" || len(run.Outputs) != 1 {
			t.Fatalf("run = %+v %v", run, run.Error)
		}
		ended := st.node.json("/api/v2/generate/" + patient.RequestID)
		started, err := time.Parse(time.RFC3339, ended["started"].(string))
		finished, err2 := time.Parse(time.RFC3339, ended["finished"].(string))
		if err != nil || err2 != nil {
			t.Errorf("started %v, finished %v", ended["started"], ended["finished"])
		}
		watch.Took(t, "the run without its wait", finished.Sub(started), 2*time.Second)
		st.released(1)

		watch.Until(t, "the server is done", st.comfy.Idle)
		for _, id := range others {
			if history := fetchText(t, st.comfy.URL+"/history/"+id); !strings.Contains(history, `"status_str":"success"`) {
				t.Errorf("somebody else's prompt ended: %.300s", history)
			}
		}
	})
}

func fetchText(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
