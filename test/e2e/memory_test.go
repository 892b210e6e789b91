package e2e

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"atelier/internal/testkit/watch"
)

// longAttack makes TestLargePicturesHoldNobodyUp measure for long, and hold the
// second person's times against those of an idle service.
const longAttack = "ATELIER_TEST_LONG_ATTACK"

// hugePNG is a small file with many pixels: 50 megapixels of 64 bits, all of
// them transparent.
func hugePNG(t *testing.T) []byte {
	t.Helper()
	const side = 7071
	var out bytes.Buffer
	chunk := func(name string, data []byte) {
		out.Write(binary.BigEndian.AppendUint32(nil, uint32(len(data))))
		body := append([]byte(name), data...)
		out.Write(body)
		out.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(body)))
	}
	out.WriteString("\x89PNG\r\n\x1a\n")
	header := binary.BigEndian.AppendUint32(nil, side)
	header = binary.BigEndian.AppendUint32(header, side)
	chunk("IHDR", append(header, 16, 6, 0, 0, 0)) // 16 bits, red, green, blue and alpha
	var data bytes.Buffer
	z, err := zlib.NewWriterLevel(&data, zlib.DefaultCompression)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]byte, 1+8*side)
	for range side {
		if _, err := z.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	chunk("IDAT", data.Bytes())
	chunk("IEND", nil)
	return out.Bytes()
}

// plainPNG is a picture of usual size.
func plainPNG(t *testing.T) []byte {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, 800, 600))
	for y := range 600 {
		for x := range 800 {
			m.SetNRGBA(x, y, color.NRGBA{uint8(x * y), uint8(x), uint8(y), 255})
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// caller is one person with a connection of their own.
type caller struct {
	n      *node
	token  string
	client *http.Client
}

func (v caller) do(ctx context.Context, method, path, kind string, body io.Reader) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, v.n.url+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+v.token)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	return v.client.Do(r)
}

// upload gives the status, the Retry-After and the id.
func (v caller) upload(ctx context.Context, file []byte) (status int, retry, id string, err error) {
	res, err := v.do(ctx, "POST", "/api/v2/uploads", "image/png", bytes.NewReader(file))
	if err != nil {
		return 0, "", "", err
	}
	defer res.Body.Close()
	var made struct{ ID string }
	err = json.NewDecoder(res.Body).Decode(&made)
	return res.StatusCode, res.Header.Get("Retry-After"), made.ID, err
}

// create starts a run and gives its id.
func (v caller) create(ctx context.Context, o order) (status int, id string, err error) {
	body, err := json.Marshal(o)
	if err != nil {
		return 0, "", err
	}
	res, err := v.do(ctx, "POST", "/api/v2/generate", "application/json", bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	var made struct {
		ID string `json:"request_id"`
	}
	err = json.NewDecoder(res.Body).Decode(&made)
	return res.StatusCode, made.ID, err
}

// run starts a run and waits for its end, of which the stream of events tells.
func (v caller) run(ctx context.Context, o order) error {
	status, id, err := v.create(ctx, o)
	if err != nil || status != http.StatusAccepted {
		return fmt.Errorf("create = %d, %w", status, err)
	}
	res, err := v.do(ctx, "GET", "/api/v2/generate/"+id+"/events", "", nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if lines.Text() == "event: done" {
			return nil
		}
	}
	return fmt.Errorf("the events of %s ended: %w", id, lines.Err())
}

// times measures something again and again, at most for so long.
func times(ctx context.Context, t *testing.T, count int, most time.Duration, what func(context.Context) error) []time.Duration {
	t.Helper()
	var all []time.Duration
	for end := time.Now().Add(most); len(all) < count && (len(all) == 0 || time.Now().Before(end)); {
		start := time.Now()
		once, cancel := context.WithTimeout(ctx, time.Minute)
		if err := what(once); err != nil {
			t.Error(err)
		}
		cancel()
		all = append(all, time.Since(start))
	}
	slices.Sort(all)
	return all
}

func middle(all []time.Duration) time.Duration { return all[len(all)/2].Round(time.Millisecond) }

func p99(all []time.Duration) time.Duration {
	return all[(len(all)*99+99)/100-1].Round(time.Millisecond)
}

// megabytes reads a number of MB from what the system says of a process.
func (n *node) megabytes(name string) int {
	n.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	if err != nil {
		n.t.Skip("this system does not say what memory a process has: ", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			if err != nil {
				n.t.Fatal(err)
			}
			return kb >> 10
		}
	}
	n.t.Fatalf("no %s", name)
	return 0
}

// TestLargePicturesHoldNobodyUp has one person upload a file of 400 KB with 50
// megapixels, 16 at a time, and run a tool on it ten times. The memory of the
// service stays within its budget, and another person's uploads and runs go on.
func TestLargePicturesHoldNobodyUp(t *testing.T) {
	needOneProcess(t, "it measures the memory of one process")
	long := os.Getenv(longAttack) != ""
	const budget = 1600 // MB
	count, most := 10, 4*time.Second
	if long {
		count, most = 200, time.Minute
	}
	s := newSite(t)
	s.env = []string{fmt.Sprintf("ATELIER_MEMORY_BUDGET=%dMB", budget), "ATELIER_LIMITS_CREATE_PER_MINUTE=10000", "ATELIER_LIMITS_CREATE_PER_HOUR=10000", "ATELIER_LIMITS_REQUESTS_PER_MINUTE=0"}
	attacker, other := s.token("mallory@example.com"), s.token("anna@example.com")
	n := s.serve()
	n.token = other
	huge, plain := hugePNG(t), plainPNG(t)
	if len(huge) > 400<<10 {
		t.Fatalf("the file has %d bytes", len(huge))
	}
	anna := caller{n, other, &http.Client{Transport: &http.Transport{}}}
	mallory := caller{n, attacker, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}}
	tools := n.tools("", nil)
	order := func(v caller, tool string, file []byte) order {
		status, _, id, err := v.upload(t.Context(), file)
		if err != nil || status != http.StatusCreated {
			t.Fatalf("upload = %d, %v", status, err)
		}
		about := n.json("/api/v2/tools/" + tools[tool])
		return order{
			ToolID: tools[tool], Hash: about["tool_fields_hash"].(string), NumResults: 1,
			Inputs: map[string]any{"picture": map[string]any{"kind": "UPLOAD_REF", "id": id}},
		}
	}
	small := order(anna, "Resize", plain)
	uploads := func(ctx context.Context) error {
		status, _, _, err := anna.upload(ctx, plain)
		if err == nil && status != http.StatusCreated {
			err = fmt.Errorf("upload = %d", status)
		}
		return err
	}
	runs := func(ctx context.Context) error { return anna.run(ctx, small) }
	for range 3 { // warm
		times(t.Context(), t, 1, time.Second, uploads)
		times(t.Context(), t, 1, time.Second, runs)
	}
	idleUploads, idleRuns := times(t.Context(), t, count, most, uploads), times(t.Context(), t, count, most, runs)
	idle := n.megabytes("VmHWM")

	// The attack, until the other person is done.
	large := order(mallory, "Light and colour", huge)
	ctx, stop := context.WithCancel(t.Context())
	var attack sync.WaitGroup
	var sent, refused, wrong atomic.Int64
	for range 16 {
		attack.Go(func() {
			for ctx.Err() == nil {
				status, retry, _, err := mallory.upload(ctx, huge)
				switch {
				case ctx.Err() != nil:
				case err == nil && status == http.StatusCreated:
					sent.Add(1)
				case err == nil && status == http.StatusServiceUnavailable && retry != "":
					refused.Add(1)
				default:
					wrong.Add(1)
					t.Logf("an upload of the attacker = %d, %v", status, err)
				}
			}
		})
	}
	attack.Go(func() {
		for ctx.Err() == nil { // as many as one person may have going
			if status, _, err := mallory.create(ctx, large); err != nil || status != http.StatusAccepted {
				time.Sleep(100 * time.Millisecond)
			}
		}
	})
	time.Sleep(2 * time.Second) // until the queues are full
	hardUploads, hardRuns := times(ctx, t, count, most, uploads), times(ctx, t, count, most, runs)
	if !long {
		time.Sleep(3 * time.Second) // so that several large ones have come
	}
	top := n.megabytes("VmHWM")
	stop()
	attack.Wait()

	t.Logf("memory (VmHWM): idle %d MB, under attack %d MB, budget %d MB", idle, top, budget)
	t.Logf("upload: idle %v, p99 %v; beside the attack %v, p99 %v", middle(idleUploads), p99(idleUploads), middle(hardUploads), p99(hardUploads))
	t.Logf("run: idle %v, p99 %v; beside the attack %v, p99 %v", middle(idleRuns), p99(idleRuns), middle(hardRuns), p99(hardRuns))
	t.Logf("the attacker: %d uploads taken, %d answered with 503 and Retry-After, %d otherwise", sent.Load(), refused.Load(), wrong.Load())
	// The collector is told to keep within the budget and half as much.
	if top > budget*3/2+idle {
		t.Errorf("the service took %d MB", top)
	}
	if wrong.Load() > 0 {
		t.Errorf("%d uploads of the attacker had no proper answer", wrong.Load())
	}
	for what, pair := range map[string][2][]time.Duration{"upload": {idleUploads, hardUploads}, "run": {idleRuns, hardRuns}} {
		before, beside := p99(pair[0]), p99(pair[1])
		if long && beside > 3*before {
			t.Errorf("%s: p99 is %v beside the attack and %v on an idle service", what, beside, before)
		}
		// The short form measures too little for more than this, and other tests
		// run beside it.
		watch.Took(t, what+" of another person", beside, 5*time.Second+3*before)
	}
	select {
	case <-n.exited:
		t.Errorf("the service ended: %v", n.err)
	default:
	}
}
