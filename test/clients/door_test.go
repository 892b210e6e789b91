package clients_test

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"atelier/docs"
	"atelier/internal/testkit/servers"
	"atelier/test/clients"
)

// doorTime is how long a script may take: it draws pictures and makes a video.
const doorTime = 3 * time.Minute

var doorPython = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	source, err := filepath.Abs("../doors")
	if err != nil {
		return "", err
	}
	return servers.Python(ctx, source, "doors")
})

// TestOpenAIClients drives the interface under /v1 with the unchanged packages
// openai of npm and of PyPI, with the tools that the program ships.
func TestOpenAIClients(t *testing.T) {
	t.Parallel()
	servers.NeedShippedPrograms(t)
	photo, err := filepath.Abs("../../docs/gallery/still-life.jpg")
	if err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]func(t *testing.T, s *service) []byte{
		"javascript": func(t *testing.T, s *service) []byte {
			return clients.Output(t, doorTime, "door.mjs", s.url()+"/v1", s.token, photo)
		},
		"python": func(t *testing.T, s *service) []byte {
			bin := servers.Need(t, "package openai of PyPI", "ATELIER_TEST_DOORS", doorPython)
			ctx, cancel := context.WithTimeout(t.Context(), doorTime)
			defer cancel()
			cmd := exec.CommandContext(ctx, filepath.Join(bin, "python"), "-W", "ignore", "../doors/door.py", s.url()+"/v1", s.token, photo)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("door.py: %v\n%s", err, out)
			}
			return out
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startService(t, "ATELIER_LIMITS_CREATE_PER_MINUTE=1000", "ATELIER_LIMITS_ACTIVE_RUNS=1000")
			s.checkRuns(run(t, s))
		})
	}
}

// TestOpenAIDocument runs the examples of the page about OpenAI-compatible
// clients that need the packages of OpenAI.
func TestOpenAIDocument(t *testing.T) {
	t.Parallel()
	page, err := fs.ReadFile(docs.Files, "openai-clients.md")
	if err != nil {
		t.Fatal(err)
	}
	example := func(t *testing.T, language string) string {
		_, after, ok := strings.Cut(string(page), "\n```"+language+" openai\n")
		code, _, closed := strings.Cut(after, "\n```\n")
		if !ok || !closed {
			t.Fatalf("the page has no example for %s", language)
		}
		return code
	}
	s := startService(t)
	env := []string{"OPENAI_BASE_URL=" + s.url() + "/v1", "OPENAI_API_KEY=" + s.token}
	check := func(folder string) {
		picture, err := os.ReadFile(filepath.Join(folder, "fox.png"))
		if err != nil || !strings.HasPrefix(string(picture), "\x89PNG") {
			t.Errorf("the example wrote %.10q, %v", picture, err)
		}
	}

	folder := t.TempDir()
	clients.OutputOf(t, doorTime, clients.Script{
		Name: "example.mjs",
		Text: []byte(strings.Replace(example(t, "js"), `"fox.png"`, strconv.Quote(filepath.Join(folder, "fox.png")), 1)),
		Env:  env,
	})
	check(folder)

	folder = t.TempDir()
	bin := servers.Need(t, "package openai of PyPI", "ATELIER_TEST_DOORS", doorPython)
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "python"), "-c", example(t, "python"))
	cmd.Dir = folder
	cmd.Env = env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	check(folder)
}

// checkRuns fails the test unless the runs that a script prints are in the list
// of runs, each charged once, and nothing about the installation is wrong.
func (s *service) checkRuns(printed []byte) {
	s.t.Helper()
	var ids []string
	if err := json.Unmarshal([]byte(strings.TrimSpace(string(printed))), &ids); err != nil {
		s.t.Fatalf("%v: %s", err, printed)
	}
	charged := 0.0
	var listed []string
	for _, one := range s.list("/generations") {
		charged += one["tokens_charged"].(float64)
		listed = append(listed, one["request_id"].(string))
	}
	for _, id := range ids {
		if !slices.Contains(listed, id) {
			s.t.Errorf("the run %s is not in the list of runs", id)
		}
	}
	account := s.get("/me")["accounts"].([]any)[0].(map[string]any)
	if left := account["balance"].(map[string]any)["tokens"].(float64); left != granted-charged {
		s.t.Errorf("%v tokens are left of %d, and the runs cost %v", left, granted, charged)
	}
	// A stream has no header with the id of its run, so one run more is listed.
	if len(listed) != len(ids)+1 {
		s.t.Errorf("%d runs are listed, and the script has %d and a stream", len(listed), len(ids))
	}
	s.runCommand("check")
}
