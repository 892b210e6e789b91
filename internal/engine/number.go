package engine

import "math"

// Number gives a numeric input within the limits of what the engine can do. The
// catalog has checked it against the manifest, but a manifest may leave fields
// out, write integers as either type or allow more.
func (j Job) Number(key string, otherwise, low, high float64) float64 {
	n := otherwise
	switch v := j.Values[key].(type) {
	case int64:
		n = float64(v)
	case float64:
		n = v
	}
	if math.IsNaN(n) {
		n = otherwise
	}
	return min(max(n, low), high)
}
