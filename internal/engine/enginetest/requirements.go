package enginetest

import (
	"bytes"
	"hash/fnv"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/netip"
	"os"
	"testing"

	"atelier/internal/base/netguard"
	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/subprocess"
)

// RequireInstalled skips the test if one of the programs that the engine needs
// is not installed. If the environment variable CI is set, the test fails
// instead.
func RequireInstalled(t testing.TB, needs []subprocess.Requirement) {
	t.Helper()
	for _, n := range needs {
		switch {
		case n.Path != "":
		case os.Getenv("CI") != "":
			t.Fatalf("%s is not installed (Debian package %s)", n.Name, n.Package)
		default:
			t.Skipf("%s is not installed (Debian package %s)", n.Name, n.Package)
		}
	}
}

// MustSucceed runs a job and fails the test if the job fails. It returns the
// recorded results.
func MustSucceed(t testing.TB, e engine.Engine, j engine.Job) *Recorder {
	t.Helper()
	var r Recorder
	if err := e.Run(t.Context(), j, &r); err != nil {
		t.Fatalf("run: %v", err)
	}
	return &r
}

// MustFail runs a job and returns its failure. The test fails if the job
// succeeds or has a result.
func MustFail(t testing.TB, e engine.Engine, j engine.Job) *engine.Error {
	t.Helper()
	var r Recorder
	err := e.Run(t.Context(), j, &r)
	if err == nil || len(r.Outputs()) > 0 {
		t.Fatalf("run = %v with %d results, want a failure", err, len(r.Outputs()))
	}
	return engine.AsError(err)
}

// MustMakeAll runs a job and fails the test if the job fails or does not make
// all requested results. It returns the recorded results.
func MustMakeAll(t testing.TB, e engine.Engine, j engine.Job) *Recorder {
	t.Helper()
	r := MustSucceed(t, e, j)
	if n := len(r.Outputs()); n != j.NumResults {
		t.Fatalf("results = %d, want %d", n, j.NumResults)
	}
	return r
}

// RunToFailure runs a job and returns its failure and everything that it
// reported before. The test fails if the job succeeds.
func RunToFailure(t testing.TB, e engine.Engine, j engine.Job) (*engine.Error, *Recorder) {
	t.Helper()
	var r Recorder
	err := e.Run(t.Context(), j, &r)
	if err == nil {
		t.Fatal("run = nil, want an error")
	}
	return engine.AsError(err), &r
}

// NewClient returns a client for a server in a test. Hosts on this machine
// count as public. authorization is the value of the Authorization header, or
// empty.
func NewClient(t testing.TB, address, authorization string) *backend.Client {
	t.Helper()
	o := backend.Options{URL: address, Guard: netguard.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})}
	if authorization != "" {
		o.Header = http.Header{"Authorization": {authorization}}
	}
	c, err := backend.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// StripedPNG returns a PNG file with stripes whose colours depend on the
// string from.
func StripedPNG(width, height int, from string) []byte {
	h := fnv.New64a()
	h.Write([]byte(from))
	sum := h.Sum64()
	p := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{
		color.NRGBA{uint8(sum), uint8(sum >> 8), uint8(sum >> 16), 255},
		color.NRGBA{uint8(sum >> 24), uint8(sum >> 32), uint8(sum >> 40), 255},
	})
	for i := range p.Pix {
		p.Pix[i] = uint8(i % width >> 3 & 1)
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, p); err != nil {
		panic(err) // writing to a buffer cannot fail
	}
	return b.Bytes()
}
