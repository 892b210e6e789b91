package nodegraph_test

import (
	"slices"
	"testing"

	"atelier/internal/engine/comfyui/nodegraph"
)

func TestSortIDs(t *testing.T) {
	t.Parallel()
	got := nodegraph.SortIDs([]string{"sub:3", "10", "9", "57:6", "09", "1"})
	want := []string{"1", "09", "9", "10", "57:6", "sub:3"}
	if !slices.Equal(got, want) {
		t.Errorf("ids = %q, want %q", got, want)
	}
}
