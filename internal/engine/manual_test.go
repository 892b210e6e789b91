package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"atelier/internal/engine"
)

// mapping is a part that settings share.
type mapping struct {
	Seed   string            `json:"seed"`
	Rename map[string]string `json:"rename"`
}

func TestManual(t *testing.T) {
	t.Parallel()
	m := engine.ManifestSpec{
		Setting: func() any {
			return &struct {
				Operation string `json:"operation"`
				Batch     int    `json:"batch,omitempty"`
				mapping
				hidden bool
			}{}
		},
		Choices: map[string][]string{"operation": {"crop", "resize"}},
		Check: func(with string) error {
			if strings.Contains(with, "-1") {
				return engine.ErrMisconfigured.WithCause(errors.New("batch: must be above zero"))
			}
			return nil
		},
	}
	for _, c := range []struct{ with, want string }{
		{`{"operation":"crop"}`, `[]`},
		{`{"operation":"crop","seed":"seed","rename":{"a":"b"},"batch":2}`, `[]`},
		{`{"operation":"corp"}`, `[{operation there is no operation corp (did you mean crop?); supported: crop, resize}]`},
		{`{}`, `[{ operation is required: one of crop, resize}]`},
		{`{"operation":7}`, `[{operation there is no operation 7; supported: crop, resize}]`},
		{`{"operation":"crop","sede":"x","other":1}`, `[{other there is no setting other; supported: batch, operation, rename, seed} {sede there is no setting sede (did you mean seed?); supported: batch, operation, rename, seed}]`},
		{`{"operation":"crop","batch":"two"}`, `[{batch must not be a string}]`},
		{`{"operation":"crop","rename":{"a":1}}`, `[{rename must not be a number}]`},
		{`{"operation":"crop","batch":-1}`, `[{ batch: must be above zero}]`},
		{`[]`, `[{ is not a mapping}]`},
	} {
		if got := fmt.Sprint(m.FindProblems(c.with)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.with, got, c.want)
		}
	}
	if all := (engine.ManifestSpec{}).FindProblems(`{"anything":1}`); len(all) != 0 {
		t.Errorf("an engine that takes anything refuses %v", all)
	}
	none := engine.ManifestSpec{Setting: func() any { return &struct{}{} }}
	if got := fmt.Sprint(none.FindProblems(`{"voice":"low"}`)); got != "[{voice there is no setting voice; none are supported}]" {
		t.Errorf("an engine that takes nothing: %s", got)
	}
}
