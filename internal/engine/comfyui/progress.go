package comfyui

import "math"

// nodeProgress is the progress of each node of a prompt. Nodes whose results
// the server has cached do not count.
type nodeProgress struct {
	fractions map[string]float64 // completed fraction of each node, from 0 to 1, by node id
	current   string
}

func newNodeProgress(nodes []string) *nodeProgress {
	s := &nodeProgress{fractions: make(map[string]float64, len(nodes))}
	for _, id := range nodes {
		s.fractions[id] = 0
	}
	return s
}

func (s *nodeProgress) markCached(nodes []string) {
	for _, id := range nodes {
		delete(s.fractions, id)
	}
}

// beginNode records that the server has started a node, which means that it
// has finished the previous one.
func (s *nodeProgress) beginNode(node string) {
	if s.current != node {
		s.setProgress(s.current, 1, 1)
	}
	s.current = node
}

// setProgress records that a node has completed value of maximum steps. Both
// numbers come from the server and are not trusted.
func (s *nodeProgress) setProgress(node string, value, maximum float64) {
	before, ok := s.fractions[node]
	part := value / maximum
	if !ok || math.IsNaN(part) || part < before {
		return
	}
	s.fractions[node] = min(part, 1)
}

func (s *nodeProgress) totalFraction() float64 {
	if len(s.fractions) == 0 {
		return 1
	}
	sum := 0.0
	for _, part := range s.fractions {
		sum += part
	}
	return min(sum/float64(len(s.fractions)), 1)
}
