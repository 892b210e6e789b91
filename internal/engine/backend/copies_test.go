package backend_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/enginetest"
)

func TestCopiesAreDropped(t *testing.T) {
	t.Parallel()
	var r enginetest.Recorder
	out := backend.DropCopies(engine.Job{NumResults: 4}, &r)
	for _, data := range []string{"a", "b", "a", "c", "b"} {
		if err := out.Output(t.Context(), engine.Result{Data: strings.NewReader(data), Note: "of " + data}); err != nil {
			t.Fatal(err)
		}
	}
	if got := bytes.Join(r.Outputs(), nil); string(got) != "abc" || strings.Join(r.Notes(), ",") != "of a,of b,of c" {
		t.Errorf("results = %q with notes %q, want each once", got, r.Notes())
	}

	broken := errors.New("the connection broke")
	if err := out.Output(t.Context(), engine.Result{Data: iotest.ErrReader(broken)}); !errors.Is(err, broken) {
		t.Errorf("output = %v, want the error of reading", err)
	}
}

func TestLargeResultsAreNotCompared(t *testing.T) {
	t.Parallel()
	var r enginetest.Recorder
	out := backend.DropCopies(engine.Job{NumResults: 2}, &r)
	large := bytes.Repeat([]byte("x"), 33<<20)
	for range 2 {
		if err := out.Output(t.Context(), engine.Result{Data: bytes.NewReader(large)}); err != nil {
			t.Fatal(err)
		}
	}
	got := r.Outputs()
	if len(got) != 2 || !bytes.Equal(got[0], large) || !bytes.Equal(got[1], large) {
		t.Errorf("results = %d, want both, whole", len(got))
	}
}
