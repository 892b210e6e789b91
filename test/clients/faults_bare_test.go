package clients_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestFaultsFindsBadDrivers proves that TestFaults can fail: a driver without a
// library, with bare requests, passes if it does everything right, and is found
// out if it leaves something out.
func TestFaultsFindsBadDrivers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		driver   string
		creates  int
		problems []string // nil: none at all
	}{
		{"correct", 24, nil},
		{"sends no keys", 12, []string{"the service has", "the driver does not know run"}},
		{"checks no hashes", 12, []string{"the file has"}},
		{"stores no tokens", 12, []string{"the driver stored no refreshed tokens"}},
		{"resumes no uploads", 12, []string{"the driver never resumed an upload"}},
		{"stops at the first error", 12, []string{"the driver failed", "the driver has no result"}},
	} {
		t.Run(c.driver, func(t *testing.T) {
			t.Parallel()
			s := startScenario(t, c.creates)
			own, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(own)
			cmd.Env = []string{bareVariable + "=" + c.driver}
			problems := s.run(cmd)
			for _, text := range c.problems {
				if !mentions(problems, text) {
					t.Errorf("no problem mentions %q: %q", text, problems)
				}
			}
			if c.problems == nil {
				for _, problem := range problems {
					t.Error(problem)
				}
			}
			t.Log(s.summary())
		})
	}
}

// bareVariable makes the test binary a driver.
const bareVariable = "ATELIER_TEST_BARE_DRIVER"

// bareDriver is a driver that uses no library. Its mistakes are fields.
type bareDriver struct {
	noKeys   bool // creates without Idempotency-Key
	noHashes bool // takes downloads as they come
	noTokens bool // does not store refreshed tokens
	noResume bool // uploads large files in one request
	attempts int  // of each request
	url      string
	mu       sync.Mutex
	tokens   bareTokens
}

var bareDrivers = map[string]*bareDriver{
	"correct":                  {attempts: 15},
	"sends no keys":            {attempts: 15, noKeys: true},
	"checks no hashes":         {attempts: 15, noHashes: true},
	"stores no tokens":         {attempts: 15, noTokens: true},
	"resumes no uploads":       {attempts: 15, noResume: true},
	"stops at the first error": {attempts: 1},
}

// bareTokens is the file with the tokens of a device.
type bareTokens struct {
	IDToken      string `json:"id_token"`
	RefreshToken string `json:"refresh_token"`
	ExpiresAt    int64  `json:"expires_at"`
}

// statusError is an answer that is no success.
type statusError struct {
	status int
	body   []byte
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.body) }

// runBareDriver does what drivers have to do, and ends the process.
func runBareDriver(d *bareDriver) {
	if err := d.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (d *bareDriver) run() error {
	d.url = os.Getenv("ATELIER_URL")
	text, err := os.ReadFile(os.Getenv("ATELIER_TOKENS"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &d.tokens); err != nil {
		return err
	}
	n, err := strconv.Atoi(os.Getenv("ATELIER_CREATES"))
	if err != nil {
		return err
	}
	upload := d.uploadResumably
	if d.noResume {
		upload = d.uploadFile
	}
	if _, err := upload(os.Getenv("ATELIER_FILE")); err != nil {
		return err
	}

	numbers := make(chan int)
	failed := make(chan error, 1)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for index := range numbers {
				if err := d.makeRun(index); err != nil {
					select {
					case failed <- fmt.Errorf("create %d: %w", index, err):
					default:
					}
				}
			}
		})
	}
	for index := range n {
		numbers <- index
	}
	close(numbers)
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// makeRun creates a run, waits for it, downloads its outputs and prints a line.
func (d *bareDriver) makeRun(index int) error {
	slug := "gradient"
	inputs := map[string]any{"seed": index, "size": map[string]int{"width": 256, "height": 256}}
	if index%20 == 19 {
		id, err := d.uploadFile(os.Getenv("ATELIER_FILE_SMALL"))
		if err != nil {
			return err
		}
		slug = "resize"
		inputs = map[string]any{
			"picture": map[string]string{"kind": "UPLOAD_REF", "id": id},
			"size":    map[string]int{"width": 32, "height": 32},
		}
	}
	order, err := d.orderOf(slug, inputs)
	if err != nil {
		return err
	}
	body, err := json.Marshal(order)
	if err != nil {
		return err
	}
	key := rand.Text()
	if d.noKeys {
		key = ""
	}
	var run bareRun
	if err := d.call(http.MethodPost, "/generate", key, body, &run); err != nil {
		return err
	}
	if err := d.waitForRun(&run); err != nil {
		return err
	}
	line := result{Index: index, RequestID: run.RequestID}
	for i, output := range run.Outputs {
		path := filepath.Join(os.Getenv("ATELIER_OUT"), fmt.Sprintf("%d-%d", index, i))
		sum, err := d.downloadOutput(output, path)
		if err != nil {
			return err
		}
		line.Files = append(line.Files, resultFile{path, sum})
	}
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(append(text, '\n'))
	return err
}

// orderOf returns the body of a create.
func (d *bareDriver) orderOf(slug string, inputs map[string]any) (map[string]any, error) {
	type tool struct {
		ID   string `json:"id"`
		Slug string `json:"slug"`
		Hash string `json:"tool_fields_hash"`
	}
	var tools struct {
		Data []tool `json:"data"`
	}
	if err := d.call(http.MethodGet, "/tools", "", nil, &tools); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(tools.Data, func(t tool) bool { return t.Slug == slug })
	if i < 0 {
		return nil, fmt.Errorf("there is no tool %s", slug)
	}
	var read tool
	err := d.call(http.MethodGet, "/tools/"+tools.Data[i].ID, "", nil, &read)
	return map[string]any{"tool_id": read.ID, "tool_fields_hash": read.Hash, "num_results": 1, "inputs": inputs}, err
}

// bareRun is a run, as far as the driver needs it.
type bareRun struct {
	RequestID string       `json:"request_id"`
	Status    string       `json:"status"`
	Outputs   []bareOutput `json:"outputs"`
}

type bareOutput struct {
	URL    string `json:"url"`
	Size   int    `json:"size_bytes"`
	SHA256 string `json:"sha256"`
}

// waitForRun follows the events of a run, and asks for its state after each
// stream.
func (d *bareDriver) waitForRun(run *bareRun) error {
	for {
		if res, err := d.send(http.MethodGet, d.url+"/api/v2/generate/"+run.RequestID+"/events", nil, nil); err == nil {
			for lines := bufio.NewScanner(res.Body); lines.Scan() && lines.Text() != "event: done"; {
			}
			res.Body.Close()
		}
		if err := d.call(http.MethodGet, "/generate/"+run.RequestID, "", nil, run); err != nil {
			return err
		}
		if run.Status != "pending" {
			return nil
		}
		time.Sleep(time.Second)
	}
}

// downloadOutput stores an output and returns the hash of the file.
func (d *bareDriver) downloadOutput(output bareOutput, path string) (string, error) {
	var content []byte
	var last error
	for range d.attempts {
		header := http.Header{}
		if len(content) > 0 {
			header.Set("Range", fmt.Sprintf("bytes=%d-", len(content)))
		}
		res, err := d.send(http.MethodGet, output.URL, header, nil)
		if err != nil {
			last = err
			d.pause(0, nil)
			continue
		}
		part, err := io.ReadAll(res.Body)
		res.Body.Close()
		last = err
		content = append(content, part...)
		sum := sha256.Sum256(content)
		found := hex.EncodeToString(sum[:])
		if found == output.SHA256 || d.noHashes {
			return found, os.WriteFile(path, content, 0o600)
		}
		if len(content) >= output.Size {
			content = nil
		}
	}
	return "", fmt.Errorf("download: %w", last)
}

// uploadFile uploads a file and returns its id.
func (d *bareDriver) uploadFile(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var made struct {
		ID string `json:"id"`
	}
	err = d.call(http.MethodPost, "/uploads?name="+filepath.Base(path), "", content, &made)
	return made.ID, err
}

// uploadResumably uploads a file by the tus protocol. After each failure it asks
// how much has arrived. If more has arrived, the attempts count anew.
func (d *bareDriver) uploadResumably(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	key := rand.Text()
	location := ""
	arrived := 0
	var last error
	for attempt := 0; attempt < d.attempts; attempt++ {
		var id string
		if location == "" {
			location, last = d.startUpload(content, key)
		} else {
			var offset int
			id, offset, last = d.resumeUpload(location, content)
			if offset > arrived {
				arrived = offset
				attempt = 0
			}
		}
		switch {
		case id != "":
			return id, nil
		case last != nil:
			d.pause(attempt, last)
		}
	}
	return "", fmt.Errorf("upload %s: %w", path, last)
}

// startUpload returns the address to send a file to.
func (d *bareDriver) startUpload(content []byte, key string) (string, error) {
	res, err := d.send(http.MethodPost, d.url+"/api/v2/uploads/resumable", http.Header{
		"Tus-Resumable":   {"1.0.0"},
		"Upload-Length":   {strconv.Itoa(len(content))},
		"Idempotency-Key": {key},
	}, nil)
	if err != nil {
		return "", err
	}
	res.Body.Close()
	location, err := res.Location()
	if err != nil {
		return "", err
	}
	return location.String(), nil
}

// resumeUpload sends the rest of a file. It returns the id of the upload, and how
// much had arrived before.
func (d *bareDriver) resumeUpload(location string, content []byte) (id string, offset int, err error) {
	res, err := d.send(http.MethodHead, location, http.Header{"Tus-Resumable": {"1.0.0"}}, nil)
	if err != nil {
		return "", 0, err
	}
	res.Body.Close()
	if id := res.Header.Get("Upload-Id"); id != "" {
		return id, len(content), nil
	}
	offset, err = strconv.Atoi(res.Header.Get("Upload-Offset"))
	if err != nil {
		return "", 0, err
	}
	res, err = d.send(http.MethodPatch, location, http.Header{
		"Tus-Resumable": {"1.0.0"},
		"Upload-Offset": {strconv.Itoa(offset)},
		"Content-Type":  {"application/offset+octet-stream"},
	}, content[offset:])
	if err != nil {
		return "", offset, err
	}
	res.Body.Close()
	return res.Header.Get("Upload-Id"), offset, nil
}

// call sends a request to the API until it is answered, and decodes the answer.
func (d *bareDriver) call(method, path, key string, body []byte, v any) error {
	var last error
	for attempt := range d.attempts {
		header := http.Header{}
		if key != "" {
			header.Set("Idempotency-Key", key)
		}
		if body != nil {
			header.Set("Content-Type", "application/json")
			if strings.HasPrefix(path, "/uploads") {
				header.Set("Content-Type", "application/octet-stream")
			}
		}
		res, err := d.send(method, d.url+"/api/v2"+path, header, body)
		if err == nil {
			var text []byte
			text, err = io.ReadAll(res.Body)
			res.Body.Close()
			if err == nil {
				return json.Unmarshal(text, v)
			}
		}
		last = err
		if e, ok := errors.AsType[*statusError](err); ok && !e.mayRetry() {
			return err
		}
		d.pause(attempt, err)
	}
	return fmt.Errorf("%s %s: %w", method, path, last)
}

func (e *statusError) mayRetry() bool {
	return e.status == 408 || e.status == 429 || e.status >= 500 || e.status == 409 && bytes.Contains(e.body, []byte("in_flight"))
}

// pause waits before the next attempt.
func (d *bareDriver) pause(attempt int, err error) {
	if d.attempts == 1 {
		return
	}
	if e, ok := errors.AsType[*statusError](err); ok && e.status != 500 {
		time.Sleep(time.Second) // Retry-After
		return
	}
	time.Sleep(between(50*time.Millisecond, min(2*time.Second, 200*time.Millisecond<<attempt)))
}

// send sends a request once, with a token that is valid.
func (d *bareDriver) send(method, address string, header http.Header, body []byte) (*http.Response, error) {
	token, err := d.validToken()
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if header != nil {
		req.Header = header
	}
	req.Header.Set("Authorization", "Bearer "+token)
	return expectSuccess(http.DefaultClient.Do(req))
}

// expectSuccess turns every answer but a success into an error.
func expectSuccess(res *http.Response, err error) (*http.Response, error) {
	if err != nil || res.StatusCode < 300 {
		return res, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	return nil, &statusError{res.StatusCode, text}
}

// validToken returns the ID token, after a refresh if it expires soon.
func (d *bareDriver) validToken() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if time.Until(time.Unix(d.tokens.ExpiresAt, 0)) > 5*time.Second {
		return d.tokens.IDToken, nil
	}
	body, err := json.Marshal(map[string]string{"refresh_token": d.tokens.RefreshToken})
	if err != nil {
		return "", err
	}
	var last error
	for attempt := range d.attempts {
		res, err := expectSuccess(http.Post(d.url+"/api/v2/auth/token/refresh", "application/json", bytes.NewReader(body)))
		if err == nil {
			var text []byte
			text, err = io.ReadAll(res.Body)
			res.Body.Close()
			if err == nil {
				return d.storeTokens(text)
			}
		}
		last = err
		d.pause(attempt, err)
	}
	return "", fmt.Errorf("refresh: %w", last)
}

// storeTokens keeps refreshed tokens, in the file too.
func (d *bareDriver) storeTokens(text []byte) (string, error) {
	if err := json.Unmarshal(text, &d.tokens); err != nil {
		return "", err
	}
	if d.noTokens {
		return d.tokens.IDToken, nil
	}
	path := os.Getenv("ATELIER_TOKENS")
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return "", err
	}
	return d.tokens.IDToken, os.Rename(path+".new", path)
}
