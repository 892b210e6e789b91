package generation

import (
	"testing"
	"time"

	"atelier/internal/catalog/catalog"
	"atelier/internal/people/company"
	"atelier/internal/people/principal"
)

func TestHeadStartOfPriorities(t *testing.T) {
	t.Parallel()
	p := Priorities{Step: time.Minute, Roles: map[string]int64{"manager": 2, "member": -1, "c1/member": 3, "vip": 9}}
	for _, tt := range []struct {
		what          string
		tool          int64
		company, role string // an empty company: the personal account
		want          time.Duration
	}{
		{"a normal run", 0, "", "", 0},
		{"a tool", 4, "", "", 4 * time.Minute},
		{"a tool with a low priority", -4, "", "", -4 * time.Minute},
		{"a role in another account does not count", 1, "", "manager", time.Minute},
		{"a role", 0, "c2", "manager", 2 * time.Minute},
		{"a tool and a role", 1, "c2", "member", 0},
		{"a role of one company", 1, "c1", "member", 4 * time.Minute},
		{"an unknown role", 1, "c1", "guest", time.Minute},
		{"the highest priority", 5, "c1", "vip", 10 * time.Minute},
	} {
		who := principal.Principal{CompanyID: tt.company, Role: company.TeamRole{Name: tt.role}}
		if tt.company != "" {
			who.TeamID = "team"
		}
		if got := p.headStart(&catalog.Tool{Priority: tt.tool}, who); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.what, got, tt.want)
		}
	}
	off := Priorities{Roles: p.Roles}
	if got := off.headStart(&catalog.Tool{Priority: 4}, principal.Principal{}); got != 0 {
		t.Errorf("without a step: %v, want 0", got)
	}
}
