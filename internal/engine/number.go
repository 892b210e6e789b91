package engine

import "math"

// NumberInput returns a numeric input clamped to the engine's limits. The catalog has validated it
// against the manifest, but a manifest may omit fields, write integers as either type or allow
// more.
func (j Job) NumberInput(key string, fallback, low, high float64) float64 {
	n := fallback
	switch v := j.Values[key].(type) {
	case int64:
		n = float64(v)
	case float64:
		n = v
	}
	if math.IsNaN(n) {
		n = fallback
	}
	return min(max(n, low), high)
}
