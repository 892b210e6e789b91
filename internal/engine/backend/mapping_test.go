package backend_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"atelier/internal/engine"
	"atelier/internal/engine/backend"
	"atelier/internal/engine/enginetest"
)

type values = map[string]any

func TestMapping(t *testing.T) {
	t.Parallel()
	one, two := enginetest.FileFromBytes("image/png", []byte("1")), enginetest.FileFromBytes("image/png", []byte("2"))
	for _, tt := range []struct {
		name string
		m    backend.Mapping
		job  engine.Job
		want values
	}{
		{"keys", backend.Mapping{}, engine.Job{Values: values{"a": int64(1), "b": []any{"x"}}}, values{"a": int64(1), "b": []any{"x"}}},
		{"renamed", backend.Mapping{Rename: map[string]string{"a": "b", "c": "-"}}, engine.Job{Values: values{"a": 1.5, "c": true}}, values{"b": 1.5}},
		{"sizes", backend.Mapping{}, engine.Job{Values: values{"size": values{"width": int64(1), "height": int64(2)}}}, values{"width": int64(1), "height": int64(2)}},
		{"renamed sides", backend.Mapping{Rename: map[string]string{"size.width": "w", "size.height": "-"}},
			engine.Job{Values: values{"size": values{"width": int64(1), "height": int64(2)}}}, values{"w": int64(1)}},
		{"a file", backend.Mapping{}, engine.Job{Files: map[string][]engine.File{"a": {one}}}, values{"a": int64(1)}},
		{"files", backend.Mapping{}, engine.Job{Files: map[string][]engine.File{"a": {one, two}}}, values{"a": []any{int64(1), int64(1)}}},
		{"a list with one", backend.Mapping{Rename: map[string]string{"a": "b[]"}}, engine.Job{Files: map[string][]engine.File{"a": {one}}}, values{"b": []any{int64(1)}}},
		{"seed and results", backend.Mapping{Seed: "s", Results: "n"}, engine.Job{Values: values{"s": int64(1)}}, values{"s": uint32(7), "n": 3}},
		{"a seed within bounds", backend.Mapping{Seed: "s", SeedMax: 4}, engine.Job{}, values{"s": uint32(2)}},
		{"the largest bound", backend.Mapping{Seed: "s", SeedMax: 1<<32 - 1}, engine.Job{}, values{"s": uint32(7)}},
		{"the manifest counts most", backend.Mapping{Seed: "s", Input: values{"s": 1, "a": "fixed"}}, engine.Job{Values: values{"a": "free"}}, values{"s": 1, "a": "fixed"}},
	} {
		got, err := tt.m.InputValues(t.Context(), tt.job, 7, 3, func(_ context.Context, f engine.File) (any, error) { return f.Size, nil })
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %v, %v, want %v", tt.name, got, err, tt.want)
		}
	}
	gone := errors.New("the disk is gone")
	_, err := backend.Mapping{}.InputValues(t.Context(), engine.Job{Files: map[string][]engine.File{"a": {one}}}, 7, 3, func(context.Context, engine.File) (any, error) { return nil, gone })
	if !errors.Is(err, gone) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}
