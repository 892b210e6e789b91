package comfyui

import (
	"encoding/json"
	"math"
	"strings"
)

const (
	// maxSteps limits the weight of a node, so that a wrong number of steps
	// does not hide the progress of all other nodes. maxLearned limits the
	// weight of nodes whose number of steps is known only from progress events,
	// because a node that downloads a file may report bytes as steps.
	maxSteps   = 1000
	maxLearned = 100
)

// nodeProgress is the progress of each node of a prompt. The weight of a node
// is its number of sampling steps, or 1 if it has none. Nodes whose results the
// server has cached do not count.
type nodeProgress struct {
	fractions map[string]float64 // completed fraction of each node, from 0 to 1, by node id
	weights   map[string]float64 // weight of each node, by node id
	current   string
}

// newNodeProgress returns the progress of a prompt whose nodes have the given
// weights, by node id.
func newNodeProgress(weights map[string]float64) *nodeProgress {
	s := &nodeProgress{fractions: make(map[string]float64, len(weights)), weights: make(map[string]float64, len(weights))}
	for id, weight := range weights {
		s.fractions[id] = 0
		s.weights[id] = weight
	}
	return s
}

func (s *nodeProgress) markCached(nodes []string) {
	for _, id := range nodes {
		delete(s.fractions, id)
	}
}

// beginNode records that the server has started a node, which means that it has
// finished the previous node.
func (s *nodeProgress) beginNode(node string) {
	if s.current != node {
		s.setProgress(s.current, 1, 1)
	}
	s.current = node
}

// setProgress records that a node has completed a number of steps (value) out
// of a total (maximum). Both numbers come from the server and are not trusted.
func (s *nodeProgress) setProgress(node string, value, maximum float64) {
	before, ok := s.fractions[node]
	part := value / maximum
	if !ok || math.IsNaN(part) || part < before {
		return
	}
	s.fractions[node] = min(part, 1)
	if s.weights[node] == 1 && maximum > 1 {
		s.weights[node] = min(maximum, maxLearned)
	}
}

func (s *nodeProgress) totalFraction() float64 {
	done := 0.0
	all := 0.0
	for id, part := range s.fractions {
		done += part * s.weights[id]
		all += s.weights[id]
	}
	if all == 0 {
		return 1
	}
	return min(done/all, 1)
}

// nodeWeights returns the weight of each node of the workflow in the progress
// of a prompt, by node id: the number of steps of a sampler, otherwise 1.
func (g *graph) nodeWeights() map[string]float64 {
	weights := make(map[string]float64, len(g.Workflow))
	for id, n := range g.Workflow {
		weights[id] = 1
		class, _ := n["class_type"].(string)
		if steps := g.stepsOf(id, 0); strings.Contains(class, "Sampler") && steps > 1 {
			weights[id] = min(steps, maxSteps)
		}
	}
	return weights
}

// stepsOf returns the number of steps of a node. A sampler without an input for
// this number is linked to a scheduler that has one. It returns 0 if the number
// is unknown.
func (g *graph) stepsOf(id string, depth int) float64 {
	const maxDepth = 8
	n, ok := g.Workflow[id]
	if !ok || depth > maxDepth {
		return 0
	}
	inputs := n["inputs"].(map[string]any)
	if steps, ok := asNumber(inputs["steps"]); ok {
		first, _ := asNumber(inputs["start_at_step"])
		if last, ok := asNumber(inputs["end_at_step"]); ok {
			steps = min(steps, last)
		}
		return steps - max(first, 0)
	}
	from, _ := linkedNode(inputs["sigmas"])
	return g.stepsOf(from, depth+1)
}

// asNumber returns the value of an input as a number. ok is false if the value
// is not a number.
func asNumber(v any) (n float64, ok bool) {
	switch v := v.(type) {
	case json.Number:
		n, err := v.Float64()
		return n, err == nil
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
