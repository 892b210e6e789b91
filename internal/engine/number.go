package engine

import "math"

// NumberInput returns the job's numeric input called key, limited to the range
// from low to high. The input was validated against the manifest, but a
// manifest may omit the field or allow a larger range, and the value may be an
// int64 or a float64. If the input is missing, NumberInput uses fallback.
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
