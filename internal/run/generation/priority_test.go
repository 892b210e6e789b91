package generation_test

import (
	"testing"
	"time"

	"atelier/internal/run/generation"
	"atelier/internal/run/generation/generationtest"
)

// TestPriorityOfARun creates runs of tools and roles with different priorities,
// and claims them.
func TestPriorityOfARun(t *testing.T) {
	change := func(s *generation.Settings) {
		s.Priorities = generation.Priorities{Step: time.Minute, Roles: map[string]int64{"manager": 2}}
	}
	generationtest.EachInstallation(t, change, func(h *generationtest.Installation) {
		const manifest = "price: {type: FREE}\noutput: {type: IMG, mime_types: [image/png]}\nengine: {name: script}\n"
		h.Apply(map[string]string{"normal": manifest, "urgent": manifest + "priority: 3\n"})
		normal := h.Create(h.Draft(generationtest.Own(h.Person(0)), "normal"))
		urgent := h.Create(h.Draft(generationtest.Own(h.Person(0)), "urgent"))
		manager := generationtest.In(h.Person(0), h.Team(0))
		manager.Role.Name = "manager"
		both := h.Create(h.Draft(manager, "urgent"))

		for _, tt := range []struct {
			what, id string
			want     time.Duration
		}{{"a normal run", normal.ID, 0}, {"an urgent tool", urgent.ID, 3 * time.Minute}, {"an urgent tool of a manager", both.ID, 5 * time.Minute}} {
			if got := h.Run(tt.id).HeadStart; got != tt.want {
				h.Errorf("%s: the head start = %v, want %v", tt.what, got, tt.want)
			}
		}
		for _, want := range []string{both.ID, urgent.ID, normal.ID} {
			if got := h.Claim("worker"); got.ID != want {
				h.Errorf("claimed %s, want %s", got.ID, want)
			}
		}
	})
}
