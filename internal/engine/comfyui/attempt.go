package comfyui

import (
	"crypto/rand"
	"slices"
	"strings"
)

const (
	// attemptInput is the name of an input that no node class defines. The
	// server ignores unknown inputs, but does not reuse the cached result of a
	// node whose inputs have changed.
	attemptInput = "atelier_attempt"
	// prefixInput is the input that sets the start of the file name in most
	// saving nodes.
	prefixInput = "filename_prefix"
)

// newAttempt returns a random value that identifies one prompt. It consists of
// lower-case letters and digits, because it becomes part of file names.
func newAttempt() string { return strings.ToLower(rand.Text()[:16]) }

// markSavers gives the saving nodes an unused input with a fresh value, so that
// the server runs them again instead of reporting files of an earlier prompt
// from its cache. These files may have been deleted since then, or their names
// may belong to other people's results. For the same reason the value becomes
// part of the file names: a file with such a name can only belong to this
// prompt.
func (g *graph) markSavers(attempt string) {
	for id, n := range g.Workflow {
		inputs := n["inputs"].(map[string]any)
		if g.savers[id] {
			inputs[attemptInput] = attempt
		}
		if prefix, ok := inputs[prefixInput].(string); ok {
			inputs[prefixInput] = prefix + "_" + attempt
		}
	}
}

// findSavers returns the ids of the nodes that may save results: the nodes that
// the manifest names as outputs, nodes whose outputs no other node uses, and
// nodes that are known by their class or inputs. Only the server has the exact
// list, and the server may be unreachable.
func (g *graph) findSavers() map[string]bool {
	used := map[string]bool{}
	for _, n := range g.Workflow {
		for _, v := range n["inputs"].(map[string]any) {
			if from, ok := linkedNode(v); ok {
				used[from] = true
			}
		}
	}
	savers := map[string]bool{}
	for id, n := range g.Workflow {
		class, _ := n["class_type"].(string)
		_, hasPrefix := n["inputs"].(map[string]any)[prefixInput]
		savers[id] = !used[id] || hasPrefix || slices.Contains(g.Outputs, id) ||
			strings.Contains(class, "Save") || strings.HasPrefix(class, "Preview") || class == "VHS_VideoCombine"
	}
	return savers
}

// linkedNode returns the id of the node that an input is linked to. ok is false
// if the input has a plain value.
func linkedNode(v any) (id string, ok bool) {
	link, ok := v.([]any)
	if !ok || len(link) != 2 {
		return "", false
	}
	id, ok = link[0].(string)
	return id, ok
}
