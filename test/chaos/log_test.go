package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// call is a call as its client saw it.
type call struct {
	Client  int       `json:"client"`
	Op      string    `json:"op"`
	Order   string    `json:"order,omitempty"` // which create it is, the same for every try
	Key     string    `json:"key,omitempty"`
	Method  string    `json:"method"`
	Path    string    `json:"path"`
	Server  string    `json:"server"`
	Invoked time.Time `json:"invoked"`
	Had     time.Time `json:"had"`
	Status  int       `json:"status"` // 0: unknown
	Problem string    `json:"problem,omitempty"`
	Run     string    `json:"run,omitempty"` // the request_id

	account    *account
	body       []byte
	listed     map[string]string // the status of each run in a list
	replayed   bool
	retryAfter string
}

func (c *call) decoded(t *testing.T) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal(c.body, &v); err != nil {
		t.Fatalf("%s %s = %s: %v", c.Method, c.Path, c.body, err)
	}
	return v
}

// code is the code of an error.
func (c *call) code() string {
	var v struct{ Error struct{ Code string } }
	if json.Unmarshal(c.body, &v) != nil || v.Error.Code == "" {
		return http.StatusText(c.Status)
	}
	return v.Error.Code
}

// log is every call of every client.
type log struct {
	mu    sync.Mutex
	calls []*call
}

func (l *log) add(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, c)
}

func (l *log) all() []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// write keeps the log in a folder.
func (l *log) write(dir, name string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for _, c := range l.all() {
		if err := e.Encode(c); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o600)
}

// patience is how long a client waits for an answer.
const patience = 5 * time.Second

// clientConns are used once each: a transport that keeps connections sends
// requests with a key again by itself, and hides from the log that it did.
var clientConns = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// send makes a call and fills in what came of it. Whatever is not a whole
// answer leaves the outcome unknown.
func (w *installation) send(p *server, c *call, body []byte, kind string) {
	c.Server, c.Invoked = p.address, time.Now()
	defer func() { c.Had = time.Now() }()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	unknown := func(err error) { c.Status, c.Problem = 0, err.Error() }
	r, err := http.NewRequestWithContext(ctx, c.Method, "http://"+p.front.address+c.Path, bytes.NewReader(body))
	if err != nil {
		unknown(err)
		return
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	r.Header.Set("Authorization", "Bearer "+c.account.token)
	if c.Key != "" {
		r.Header.Set("Idempotency-Key", c.Key)
	}
	res, err := clientConns.Do(r)
	if err != nil {
		unknown(err)
		return
	}
	defer res.Body.Close()
	if c.body, err = io.ReadAll(res.Body); err != nil {
		unknown(err)
		return
	}
	c.Status, c.replayed, c.retryAfter = res.StatusCode, res.Header.Get("Idempotent-Replayed") == "true", res.Header.Get("Retry-After")
}
