package generation

import (
	"time"

	"atelier/internal/catalog/catalog"
	"atelier/internal/people/principal"
)

// MaxPriority is the highest priority of a run in steps; the lowest is
// -MaxPriority.
const MaxPriority = 10

// Priorities are the operator's settings for the priorities of runs. The
// priority of a run is the sum of the priority in the manifest of its tool and
// the priority of the person's role in the team.
type Priorities struct {
	// Step is the head start of a run for each step of its priority; 0 turns
	// priorities off.
	Step time.Duration
	// Roles has the priorities of team roles in steps, by the name of the role
	// or, with precedence, by the id of the company, a slash and the name.
	Roles map[string]int64
}

// headStart returns how much earlier than its creation a run of a tool counts as
// created when the next run is chosen.
func (p Priorities) headStart(t *catalog.Tool, who principal.Principal) time.Duration {
	steps := t.Priority
	if who.TeamID != "" {
		role, ok := p.Roles[who.CompanyID+"/"+who.Role.Name]
		if !ok {
			role = p.Roles[who.Role.Name]
		}
		steps += role
	}
	return p.HeadStart(steps)
}

// HeadStart returns the head start of a run whose tool and role have a priority
// of so many steps together.
func (p Priorities) HeadStart(steps int64) time.Duration {
	return time.Duration(min(max(steps, -MaxPriority), MaxPriority)) * p.Step
}
