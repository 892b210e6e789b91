package tiny_test

import "testing"

// TestEveryFieldMatters changes one field at a time.
func TestEveryFieldMatters(t *testing.T) {
	t.Parallel()
	for key, variants := range map[string][]any{
		"prompt":     {"red fox", "blue car"},
		"style":      {"any", "3d", "glossy", "flat", "cartoon", "simple"},
		"background": {"prompt", "white", "blue", "night", "snow"},
		"size":       {side(128), side(512)},
		"steps":      {int64(2), int64(3)},
		"guidance":   {1.0, int64(2)},
		"strength":   {0.2, 0.5, int64(1)},
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			seen := map[string]any{}
			for _, v := range variants {
				out := string(results(t, shared(), job("sketch-from-picture", values{"strength": 0.9, key: v}, pngFile(ball(90, 60)))).Outputs()[0])
				if before, ok := seen[out]; ok {
					t.Errorf("%v and %v make no difference", before, v)
				}
				seen[out] = v
			}
		})
	}
}
