// Tests of our own client libraries for Go, Python and JavaScript.
//
// TestPython and TestJavaScript run the libraries' own tests against the
// program. TestFaults sends each library through a proxy that disturbs its
// requests by a plan, while the program is killed and started again. What the
// library delivered must fit what the service has: no run is missing, none was
// made twice, and every downloaded file is whole.
//
// In the suite this is a short form. "make faults" is the long one; -seed
// repeats the faults of a run, though not the moments of its kills.
package clients_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/png"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atelier/internal/testkit/watch"
	"atelier/test/program"
	"atelier/test/visitor"
)

var (
	creates = flag.Int("creates", 40, "how many runs each client creates")
	seed    = flag.Uint64("seed", 0, "what the faults follow from (default: the time)")
)

func TestMain(m *testing.M) {
	if name := os.Getenv(bareVariable); name != "" {
		runBareDriver(bareDrivers[name])
		return
	}
	program.Main(m)
}

// TestFaults sends the client libraries through faults and kills.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]func(t *testing.T) *exec.Cmd{
		"go":         goDriver,
		"python":     pythonDriver,
		"javascript": javascriptDriver,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startScenario(t, *creates)
			for _, problem := range s.run(command(t)) {
				t.Error(problem)
			}
			t.Log(s.summary())
		})
	}
}

const (
	idLifetime = 10 * time.Second // of an ID token, so that clients refresh in the middle
	lease      = 2 * time.Second  // of a run, after which another process takes over
)

// scenario is a service behind a proxy, and the files with which a driver
// works.
type scenario struct {
	t       *testing.T
	seed    uint64
	creates int
	service *service
	proxy   *proxy
	dir     string
	large   []byte
	tokens  visitor.Tokens // with which the driver begins
	kills   map[string]int // by the operation in the middle of which they came
	took    time.Duration
}

func startScenario(t *testing.T, creates int) *scenario {
	t.Helper()
	s := &scenario{
		t:       t,
		seed:    *seed,
		creates: creates,
		dir:     t.TempDir(),
		kills:   map[string]int{},
	}
	if s.seed == 0 {
		s.seed = uint64(time.Now().UnixNano())
	}
	s.proxy = startProxy(t, s.seed)
	s.service = startService(t,
		"ATELIER_BASE_URL="+s.proxy.server.URL,
		"ATELIER_TOKENS_ID_LIFETIME="+idLifetime.String(),
		"ATELIER_TOKENS_REFRESH_ROTATE_AFTER=5s",
		"ATELIER_RUNS_LEASE="+lease.String(),
		"ATELIER_RUNS_ATTEMPTS=10000",
		"ATELIER_LIMITS_CREATE_PER_MINUTE=100000",
		"ATELIER_LIMITS_CREATE_PER_HOUR=100000",
		"ATELIER_LIMITS_ACTIVE_RUNS=1000",
	)
	s.proxy.address.Store(s.service.address)
	s.writeFiles()
	s.signIn()
	return s
}

// writeFiles writes the files that the driver uploads, and makes the folder for
// its downloads.
func (s *scenario) writeFiles() {
	s.t.Helper()
	chance := rand.New(rand.NewPCG(s.seed, 0))
	s.large = noiseWAV(chance, 9<<20)
	picture := image.NewGray(image.Rect(0, 0, 64, 48))
	for i := range picture.Pix {
		picture.Pix[i] = uint8(chance.Uint32())
	}
	var small bytes.Buffer
	for _, err := range []error{
		png.Encode(&small, picture),
		os.WriteFile(s.file("noise.wav"), s.large, 0o600),
		os.WriteFile(s.file("picture.png"), small.Bytes(), 0o600),
		os.Mkdir(s.file("out"), 0o700),
	} {
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *scenario) file(name string) string { return filepath.Join(s.dir, name) }

// noiseWAV returns a WAV file of this size with 16-bit mono noise.
func noiseWAV(chance *rand.Rand, size int) []byte {
	const header, rate = 44, 44100
	b := make([]byte, 0, size)
	b = append(b, "RIFF"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(size-8))
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)
	b = binary.LittleEndian.AppendUint16(b, 1) // PCM
	b = binary.LittleEndian.AppendUint16(b, 1) // channels
	b = binary.LittleEndian.AppendUint32(b, rate)
	b = binary.LittleEndian.AppendUint32(b, rate*2)
	b = binary.LittleEndian.AppendUint16(b, 2)
	b = binary.LittleEndian.AppendUint16(b, 16)
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(size-header))
	for len(b) < size {
		b = binary.LittleEndian.AppendUint16(b, uint16(chance.Uint32()))
	}
	return b
}

// signIn signs a device in and writes its tokens where the driver reads them.
func (s *scenario) signIn() {
	s.t.Helper()
	v := visitor.New(s.proxy.server.URL)
	if err := v.SignIn(email, password); err != nil {
		s.t.Fatal(err)
	}
	in, err := v.Device("")
	if err != nil {
		s.t.Fatal(err)
	}
	s.tokens = in.Tokens
	text, err := json.Marshal(in.Tokens)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.file("tokens.json"), text, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// run runs a driver through the faults and returns everything that is wrong
// afterwards.
func (s *scenario) run(driver *exec.Cmd) (problems []string) {
	s.t.Helper()
	limit := 4*time.Minute + time.Duration(s.creates)*3*time.Second
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()

	var stdout bytes.Buffer
	stderr := &watch.Log{}
	driver.Stdout = &stdout
	driver.Stderr = stderr
	driver.Env = append(driver.Env,
		"PATH="+os.Getenv("PATH"), "HOME="+s.service.home,
		"ATELIER_URL="+s.proxy.server.URL,
		"ATELIER_TOKENS="+s.file("tokens.json"),
		"ATELIER_FILE="+s.file("noise.wav"),
		"ATELIER_FILE_SMALL="+s.file("picture.png"),
		fmt.Sprint("ATELIER_CREATES=", s.creates),
		"ATELIER_OUT="+s.file("out"),
	)
	s.proxy.faulty.Store(true)
	began := time.Now()
	if err := driver.Start(); err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- driver.Wait() }()

	storm, calm := context.WithCancel(ctx)
	defer calm()
	killer := make(chan error, 1)
	go func() { killer <- s.killRepeatedly(storm) }()

	var failure error
	select {
	case failure = <-ended:
	case <-ctx.Done():
		driver.Process.Kill()
		<-ended
		failure = fmt.Errorf("it has not ended after %v", limit)
	}
	s.took = time.Since(began)
	calm()
	if err := <-killer; err != nil {
		s.t.Fatal(err)
	}
	s.proxy.faulty.Store(false)

	if failure != nil {
		problems = append(problems, fmt.Sprintf("the driver failed: %v: %s", failure, tail(stderr.String(), 4000)))
	}
	return append(problems, s.judge(stdout.Bytes())...)
}

// killRepeatedly kills the program every few seconds, in the middle of each
// operation in turn, and starts it again. In the end the program runs.
func (s *scenario) killRepeatedly(ctx context.Context) error {
	operations := []operation{create, upload, wait, refresh}
	pending := slices.Clone(operations)
	for ctx.Err() == nil {
		s.proxy.arm(pending...)
		moment := "at no particular moment"
		select {
		case <-ctx.Done():
			return nil
		case op := <-s.proxy.reached:
			moment = "in the middle of " + string(op)
			pending = slices.DeleteFunc(pending, func(o operation) bool { return o == op })
			if op != upload { // the proxy holds an upload back
				<-time.After(between(0, 30*time.Millisecond))
			}
		case <-time.After(6 * time.Second):
		}
		if len(pending) == 0 {
			pending = slices.Clone(operations)
		}
		s.service.kill()
		s.kills[moment]++
		<-time.After(between(0, 300*time.Millisecond))
		if err := s.service.start(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(between(2*time.Second, 4*time.Second)):
		}
	}
	return nil
}

// summary is what happened, in lines.
func (s *scenario) summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d creates in %v, seed %d\n", s.creates, s.took.Round(100*time.Millisecond), s.seed)
	for _, moment := range slices.Sorted(maps.Keys(s.kills)) {
		fmt.Fprintf(&b, "%6d kills %s\n", s.kills[moment], moment)
	}
	return b.String() + s.proxy.counters()
}
