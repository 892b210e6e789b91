package comfyui

import "math"

// steps is how far the nodes of a prompt are. Nodes whose results the server
// still has do not count.
type steps struct {
	of      map[string]float64 // by node, from 0 to 1
	current string
}

func newSteps(nodes []string) *steps {
	s := &steps{of: make(map[string]float64, len(nodes))}
	for _, id := range nodes {
		s.of[id] = 0
	}
	return s
}

func (s *steps) cached(nodes []string) {
	for _, id := range nodes {
		delete(s.of, id)
	}
}

// begin says that the server is at a node now, so it has left the one before.
func (s *steps) begin(node string) {
	if s.current != node {
		s.reach(s.current, 1, 1)
	}
	s.current = node
}

// reach says how far a node is. A server can say anything.
func (s *steps) reach(node string, value, most float64) {
	before, ok := s.of[node]
	part := value / most
	if !ok || math.IsNaN(part) || part < before {
		return
	}
	s.of[node] = min(part, 1)
}

func (s *steps) fraction() float64 {
	if len(s.of) == 0 {
		return 1
	}
	sum := 0.0
	for _, part := range s.of {
		sum += part
	}
	return min(sum/float64(len(s.of)), 1)
}
