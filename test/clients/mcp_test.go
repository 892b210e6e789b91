package clients_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"atelier/internal/testkit/servers"
	"atelier/test/program"
)

// mcpPrograms are the official programs that speak the Model Context Protocol.
type mcpPrograms struct{ node, packages string }

var doorNode = sync.OnceValues(func() (mcpPrograms, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	source, err := filepath.Abs("../doors")
	if err != nil {
		return mcpPrograms{}, err
	}
	node, packages, err := servers.Node(ctx, source, "doors")
	return mcpPrograms{node, packages}, err
})

// runMCPProgram runs a program of the packages and returns what it prints.
func runMCPProgram(t *testing.T, script string, arguments ...string) ([]byte, error) {
	t.Helper()
	p := servers.Need(t, "programs of the Model Context Protocol", "ATELIER_TEST_DOORS", doorNode)
	ctx, cancel := context.WithTimeout(t.Context(), doorTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.node, append([]string{filepath.Join(p.packages, "node_modules", ".bin", script)}, arguments...)...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Logf("%s: %s", script, stderr.Bytes())
	}
	return out, err
}

// mcpResult is the result of a call as the Inspector prints it.
type mcpResult struct {
	Tools   []struct{ Name string }
	Content []struct {
		Type, Text, Data, URI string
		MimeType              string `json:"mimeType"`
	}
	StructuredContent struct {
		RunID string `json:"run_id"`
	} `json:"structuredContent"`
	IsError bool `json:"isError"`
}

// TestMCPInspector calls tools with the official Inspector.
func TestMCPInspector(t *testing.T) {
	t.Parallel()
	servers.NeedShippedPrograms(t)
	s := startService(t)
	inspect := func(arguments ...string) (r mcpResult) {
		t.Helper()
		out, err := runMCPProgram(t, "mcp-inspector", append([]string{"--cli", s.url() + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + s.token}, arguments...)...)
		if jsonErr := json.NewDecoder(bytes.NewReader(out)).Decode(&r); jsonErr != nil {
			t.Fatalf("%v: %v: %s", arguments, err, out)
		}
		return r
	}
	list := inspect("--method", "tools/list")
	var names []string
	for _, one := range list.Tools {
		names = append(names, one.Name)
	}
	for _, want := range []string{"search_tools", "preview_cost", "gradient", "sketch", "speech"} {
		if !slices.Contains(names, want) {
			t.Errorf("the tools are %v, without %s", names, want)
		}
	}
	small := inspect("--method", "tools/call", "--tool-name", "gradient", "--tool-arg", "size=512x512")
	if small.IsError || len(small.Content) != 2 || small.Content[1].Type != "image" || small.Content[1].MimeType != "image/png" || len(small.Content[1].Data) < 1000 {
		t.Errorf("gradient = %.500v", small)
	}
	large := inspect("--method", "tools/call", "--tool-name", "gradient", "--tool-arg", "size=2048x2048")
	if large.IsError || len(large.Content) != 3 || large.Content[1].Type != "resource_link" || !strings.Contains(large.Content[1].URI, "/media/") || large.Content[2].Type != "image" {
		t.Errorf("a large gradient = %.500v", large)
	}
	wrong := inspect("--method", "tools/call", "--tool-name", "gradient", "--tool-arg", "colour=red")
	if !wrong.IsError || !strings.Contains(wrong.Content[0].Text, "The inputs are") {
		t.Errorf("a wrong call = %.500v", wrong)
	}
	s.checkCharges(small.StructuredContent.RunID, large.StructuredContent.RunID)
}

// checkCharges fails the test unless these are the runs of the account, each
// charged once, and nothing about the installation is wrong.
func (s *service) checkCharges(ids ...string) {
	s.t.Helper()
	charged := 0.0
	var listed []string
	for _, one := range s.list("/generations") {
		charged += one["tokens_charged"].(float64)
		listed = append(listed, one["request_id"].(string))
	}
	slices.Sort(ids)
	slices.Sort(listed)
	if !slices.Equal(ids, listed) {
		s.t.Errorf("the runs are %v, want %v", listed, ids)
	}
	account := s.get("/me")["accounts"].([]any)[0].(map[string]any)
	if left := account["balance"].(map[string]any)["tokens"].(float64); left != granted-charged {
		s.t.Errorf("%v tokens are left of %d, and the runs cost %v", left, granted, charged)
	}
	s.runCommand("check")
}

// TestMCPConformance runs the official conformance checks that do not need tools
// of their own. They know no credentials, so a proxy adds one.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	s := startService(t)
	service, err := url.Parse(s.url())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(service)
		r.Out.Header.Set("Authorization", "Bearer "+s.token)
	}})
	t.Cleanup(proxy.Close)
	for _, scenario := range []string{"server-initialize", "ping", "tools-list"} {
		out, err := runMCPProgram(t, "conformance", "server", "--url", proxy.URL+"/mcp", "--scenario", scenario)
		if err != nil || !strings.Contains(string(out), "0 failed") {
			t.Errorf("%s: %v: %s", scenario, err, out)
		}
	}
}

// TestMCPPython drives the interface with the official client for Python, in the
// version of the protocol with sessions and in the one without.
func TestMCPPython(t *testing.T) {
	t.Parallel()
	servers.NeedShippedPrograms(t)
	bin := servers.Need(t, "package mcp of PyPI", "ATELIER_TEST_DOORS", doorPython)
	for _, mode := range []string{"legacy", "auto"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := startService(t, "ATELIER_LIMITS_CREATE_PER_MINUTE=1000")
			ctx, cancel := context.WithTimeout(t.Context(), doorTime)
			defer cancel()
			out, err := exec.CommandContext(ctx, filepath.Join(bin, "python"), "-W", "ignore", "../doors/mcp_client.py", s.url()+"/mcp", s.token, mode).CombinedOutput()
			if err != nil {
				t.Fatalf("mcp_client.py: %v\n%s", err, out)
			}
			var printed struct {
				Runs          []string
				CancelledCost int `json:"cancelled_cost"`
			}
			if err := json.Unmarshal(out, &printed); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if printed.CancelledCost != 0 {
				t.Errorf("the cancelled run cost %d tokens", printed.CancelledCost)
			}
			for _, one := range s.list("/generations") {
				if one["status"] == "cancelled" {
					printed.Runs = append(printed.Runs, one["request_id"].(string))
				}
			}
			if len(printed.Runs) != 5 {
				t.Errorf("the runs are %v, want four and a cancelled one", printed.Runs)
			}
			s.checkCharges(printed.Runs...)
		})
	}
}

// TestMCPOverStdio has an assistant start atelier mcp as a program.
func TestMCPOverStdio(t *testing.T) {
	t.Parallel()
	s := startService(t)
	path, err := program.Binary()
	if err != nil {
		t.Fatal(err)
	}
	start := func(progress func(float64), arguments ...string) (*mcp.ClientSession, error) {
		cmd := exec.CommandContext(t.Context(), path, append([]string{"mcp"}, arguments...)...)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + t.TempDir(), "ATELIER_SERVICE=" + s.url(), "ATELIER_TOKEN=" + s.token}
		client := mcp.NewClient(&mcp.Implementation{Name: "assistant", Version: "1"}, &mcp.ClientOptions{
			ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress(r.Params.Progress) },
		})
		return client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	}
	var mu sync.Mutex
	var seen []float64
	session, err := start(func(f float64) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, f)
	}, "--kits", "all")
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || !slices.ContainsFunc(list.Tools, func(one *mcp.Tool) bool { return one.Name == "sketch" }) {
		t.Fatalf("tools = %+v, %v", list, err)
	}
	params := &mcp.CallToolParams{Name: "sketch", Arguments: map[string]any{"prompt": "a red fox"}}
	params.SetProgressToken("sketch")
	result, err := session.CallTool(t.Context(), params)
	if err != nil || result.IsError || len(result.Content) < 2 {
		t.Fatalf("sketch = %+v, %v", result, err)
	}
	mu.Lock()
	if len(seen) == 0 {
		t.Error("there was no progress")
	}
	mu.Unlock()

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "sketch", Arguments: map[string]any{"prompt": "never", "num_results": 4}}); err == nil {
		t.Error("the cancelled call has a result")
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		states := map[any]int{}
		for _, one := range s.list("/generations") {
			states[one["status"]]++
		}
		if states["cancelled"] == 1 && states["succeeded"] == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the runs are %v", states)
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.runCommand("check")

	s.token = "atl_p_wrong"
	if _, err := start(func(float64) {}); err == nil {
		t.Error("a wrong token connects")
	}
}
