// Package nodegraph contains the rules of ComfyUI's graphs that package comfyui
// and package workflowimport share.
package nodegraph

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Keys of a manifest's bind setting that are not field keys.
const (
	KeySeed    = "seed"        // the seed of the run
	KeyResults = "num_results" // the number of results of one execution
)

// SortIDs returns the ids of nodes in numerical order, so that 9 comes before
// 10. Ids that are not numbers come last.
func SortIDs(ids []string) []string {
	return slices.SortedFunc(slices.Values(ids), func(a, b string) int {
		x, errX := strconv.ParseUint(a, 10, 64)
		y, errY := strconv.ParseUint(b, 10, 64)
		switch {
		case errX == nil && errY == nil:
			return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
		case errX == nil:
			return -1
		case errY == nil:
			return 1
		}
		return strings.Compare(a, b)
	})
}
