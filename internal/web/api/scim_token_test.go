package api_test

import (
	"testing"

	"atelier/internal/people/company"
	"atelier/internal/web/api/wire"
)

func TestScimTokenOverHTTP(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		boss := s.signedIn("boss@fox.example")
		id, poor := s.site.Company("Fox", company.EnterprisePlan), s.site.Company("Hound", company.TeamPlan)
		for _, c := range []string{id, poor} {
			s.site.Admit(c, "boss@fox.example", company.CompanyPermissions...)
		}
		at := "/companies/" + id + "/scim-token"
		boss.do(404, "GET", at, "")
		boss.do(404, "DELETE", at, "")
		made := as[wire.ScimToken](boss, 201, "POST", at, "")
		if made.Token == nil || made.Hint != (*made.Token)[len(*made.Token)-4:] || made.LastUsed != nil || made.URL == "" {
			t.Errorf("made = %+v", made)
		}
		again := as[wire.ScimToken](boss, 200, "GET", at, "")
		if again.Token != nil || again.Hint != made.Hint || again.URL != made.URL || !again.Created.Equal(made.Created) {
			t.Errorf("read = %+v, want %+v", again, made)
		}
		if other := as[wire.ScimToken](boss, 201, "POST", at, ""); *other.Token == *made.Token {
			t.Error("the same token twice")
		}
		boss.do(204, "DELETE", at, "")
		boss.do(404, "GET", at, "")
		for _, method := range []string{"GET", "POST"} {
			if p := boss.do(403, method, "/companies/"+poor+"/scim-token", "").readError(t); p.Details["reason"] != "plan" {
				t.Errorf("%s without the plan: %+v", method, p)
			}
		}
	})
}
