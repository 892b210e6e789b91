package clients_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"atelier/test/visitor"
)

// result is a line that a driver prints for a run.
type result struct {
	Index     int          `json:"index"`
	RequestID string       `json:"request_id"`
	Files     []resultFile `json:"files"`
}

// resultFile is a downloaded output.
type resultFile struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// judge holds what the driver printed against what the service has, and returns
// what does not fit.
func (s *scenario) judge(printed []byte) (problems []string) {
	s.t.Helper()
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	results := decodeResults(printed, report)
	runs := s.endedRuns(report)
	s.judgeRuns(results, runs, report)
	s.judgeBalance(runs, report)
	s.judgeUploads(report)
	s.judgeSignIn(report)
	s.judgeFaults(report)
	if v := s.service.runCommand("check"); fmt.Sprint(v["violations"]) != "[]" {
		report("atelier check finds %v", v)
	}
	return problems
}

// decodeResults reads the lines of a driver.
func decodeResults(printed []byte, report func(string, ...any)) map[int]result {
	results := map[int]result{}
	for line := range bytes.Lines(printed) {
		var r result
		if err := json.Unmarshal(line, &r); err != nil || r.RequestID == "" {
			report("the driver printed %q", line)
			continue
		}
		if _, twice := results[r.Index]; twice {
			report("the driver printed run %d twice", r.Index)
		}
		results[r.Index] = r
	}
	return results
}

// endedRuns returns the runs of the account by id, once all have ended. A
// driver that failed leaves runs behind that still work.
func (s *scenario) endedRuns(report func(string, ...any)) map[string]map[string]any {
	s.t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for tick := time.Tick(200 * time.Millisecond); ; <-tick {
		runs := map[string]map[string]any{}
		pending := 0
		for _, run := range s.service.list("/generations") {
			runs[run["request_id"].(string)] = run
			if run["status"] == "pending" {
				pending++
			}
		}
		if pending == 0 {
			return runs
		}
		if time.Now().After(deadline) {
			report("%d runs do not end", pending)
			return runs
		}
	}
}

// judgeRuns expects a run for each index, made once, and its files on the disk.
func (s *scenario) judgeRuns(results map[int]result, runs map[string]map[string]any, report func(string, ...any)) {
	if len(runs) != s.creates {
		report("the service has %d runs for %d creates", len(runs), s.creates)
	}
	told := map[string]int{}
	pictures := 0
	for index := range s.creates {
		r, ok := results[index]
		if !ok {
			report("the driver has no result for create %d", index)
			continue
		}
		if before, twice := told[r.RequestID]; twice {
			report("creates %d and %d have the same run %s", before, index, r.RequestID)
		}
		told[r.RequestID] = index
		run := runs[r.RequestID]
		switch {
		case run == nil:
			report("the service has no run %s of create %d", r.RequestID, index)
			continue
		case run["status"] != "succeeded":
			report("run %s of create %d ended as %v: %v", r.RequestID, index, run["status"], run["error"])
		case run["tool_name"] != "Gradient":
			pictures++
		case run["seed"] != float64(index):
			report("run %s of create %d has the seed %v", r.RequestID, index, run["seed"])
		}
		judgeFiles(r, run, report)
	}
	if least := s.creates / 20; pictures < least || pictures > least+1 {
		report("%d runs used the uploaded picture, want every 20th of %d", pictures, s.creates)
	}
	for id, run := range runs {
		if _, known := told[id]; !known {
			report("the driver does not know run %s of tool %v with seed %v", id, run["tool_name"], run["seed"])
		}
	}
}

// judgeFiles expects the files of a run to be the outputs that the service has.
func judgeFiles(r result, run map[string]any, report func(string, ...any)) {
	outputs := run["outputs"].([]any)
	if len(r.Files) != len(outputs) {
		report("create %d has %d files for %d outputs", r.Index, len(r.Files), len(outputs))
		return
	}
	for i, one := range outputs {
		output := one.(map[string]any)
		file := r.Files[i]
		content, err := os.ReadFile(file.Path)
		if err != nil {
			report("create %d: %v", r.Index, err)
			continue
		}
		sum := sha256.Sum256(content)
		found := hex.EncodeToString(sum[:])
		if found != output["sha256"] || float64(len(content)) != output["size_bytes"] {
			report("create %d: the file has %d bytes with the hash %s, the output %v with %v", r.Index, len(content), found, output["size_bytes"], output["sha256"])
		}
		if file.SHA256 != output["sha256"] {
			report("create %d: the driver names the hash %s, the output has %v", r.Index, file.SHA256, output["sha256"])
		}
	}
}

// judgeBalance expects every run of the tool that costs a token to be paid for
// once.
func (s *scenario) judgeBalance(runs map[string]map[string]any, report func(string, ...any)) {
	s.t.Helper()
	paid := 0
	for id, run := range runs {
		price := 0.0
		if run["tool_name"] == "Gradient" && run["status"] == "succeeded" {
			price = 1
			paid++
		}
		if run["tokens_charged"] != price || run["tokens_held"] != 0.0 {
			report("run %s was charged %v tokens and holds %v, want %v", id, run["tokens_charged"], run["tokens_held"], price)
		}
	}
	account := s.service.get("/me")["accounts"].([]any)[0].(map[string]any)
	balance := account["balance"].(map[string]any)
	if balance["tokens"] != float64(granted-paid) || balance["held"] != 0.0 {
		report("the balance is %v, want %d less %d", balance, granted, paid)
	}
}

// judgeUploads expects the large file to have arrived whole and once.
func (s *scenario) judgeUploads(report func(string, ...any)) {
	s.t.Helper()
	sum := sha256.Sum256(s.large)
	want := hex.EncodeToString(sum[:])
	arrived := 0
	for _, one := range s.service.list("/uploads") {
		switch {
		case one["type"] != "AUDIO":
		case one["sha256"] == want && one["size_bytes"] == float64(len(s.large)):
			arrived++
		default:
			report("the service has a damaged upload: %v", one)
		}
	}
	if arrived != 1 {
		report("the large file was uploaded %d times", arrived)
	}
}

// judgeSignIn expects the tokens that the driver left behind to work, and to be
// readable only by their owner.
func (s *scenario) judgeSignIn(report func(string, ...any)) {
	s.t.Helper()
	path := s.file("tokens.json")
	text, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		report("the file with the tokens has the mode %v, %v", info.Mode(), err)
	}
	var tokens visitor.Tokens
	if err := json.Unmarshal(text, &tokens); err != nil {
		report("the file with the tokens is damaged: %v", err)
		return
	}
	if tokens.IDToken == s.tokens.IDToken {
		report("the driver stored no refreshed tokens")
	}
	body, err := json.Marshal(map[string]string{"refresh_token": tokens.RefreshToken})
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := http.Post(s.service.url()+"/api/v2/auth/token/refresh", "application/json", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		report("the sign-in is lost: a refresh is answered with %s", res.Status)
	}
}

// judgeFaults expects that there was something to survive.
func (s *scenario) judgeFaults(report func(string, ...any)) {
	s.proxy.mu.Lock()
	defer s.proxy.mu.Unlock()
	for _, f := range faults() {
		least := 2
		if f == uploadCut || f == downloadShortened {
			least = 1 // there are few
		}
		if s.proxy.faults[f] < least {
			report("%d times %s, want at least %d", s.proxy.faults[f], f, least)
		}
	}
	kills := 0
	for _, n := range s.kills {
		kills += n
	}
	if kills < 2 {
		report("%d kills, want at least 2", kills)
	}
	if s.proxy.refreshed == 0 {
		report("the driver never refreshed its tokens")
	}
	if s.proxy.resumed[download] == 0 {
		report("the driver never resumed a download")
	}
	if s.proxy.resumed[upload] == 0 {
		report("the driver never resumed an upload")
	}
}

// mentions reports whether a problem contains the text.
func mentions(problems []string, text string) bool {
	return slices.ContainsFunc(problems, func(problem string) bool { return strings.Contains(problem, text) })
}
