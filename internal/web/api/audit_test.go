package api_test

import (
	"net/url"
	"slices"
	"testing"
	"time"

	"atelier/internal/base/audit"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/people/company"
	"atelier/internal/web/api/wire"
)

// TestAuditFilters puts rows into the log and asks for some of them.
func TestAuditFilters(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		boss, other := s.signedIn("boss@example.com"), s.signedIn("other@example.com")
		id, second := s.site.Company("Fox", company.TeamPlan), s.site.Company("Hound", company.TeamPlan)
		for _, c := range []string{id, second} {
			s.site.Admit(c, "boss@example.com", company.ManageMembers)
			s.site.Admit(c, "other@example.com")
		}
		log := "/companies/" + id + "/audit"
		newest := as[wire.AuditList](boss, 200, "GET", "/companies/"+second+"/audit?limit=1", "").Data[0].Seq // of all
		began := time.Now().Truncate(time.Microsecond)
		add := func(entries ...audit.Entry) {
			if err := s.db.Write(t.Context(), func(tx *sqldb.Tx) error {
				for _, e := range entries {
					if err := audit.Add(t.Context(), tx, e); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		add( // numbered from 1 below
			audit.Entry{Act: audit.TokenCreated, CompanyID: id, ActorID: boss.uid, PersonID: other.uid},
			audit.Entry{Act: audit.TokenDeleted, CompanyID: id, ActorID: other.uid, PersonID: other.uid},
			audit.Entry{Act: audit.TokensGranted, CompanyID: id}.WithChange("0", "5"),
			audit.Entry{Act: audit.TokenCreated, CompanyID: second, ActorID: boss.uid, PersonID: other.uid},
		)
		middle := time.Now().Truncate(time.Microsecond).Add(time.Microsecond)
		add(audit.Entry{Act: audit.TeamCreated, CompanyID: id, ActorID: boss.uid}, audit.Entry{Act: audit.TeamChanged, CompanyID: id, ActorID: boss.uid}.WithChange("Film", "Print"))
		stamp := func(at time.Time) string { return url.QueryEscape(at.UTC().Format(time.RFC3339Nano)) }

		for _, c := range []struct {
			query string
			want  []int64
		}{
			{"act=token", []int64{2, 1}},
			{"act=token.created", []int64{1}},
			{"act=tokens", []int64{3}},
			{"act=team&uid=" + boss.uid, []int64{6, 5}},
			{"uid=" + other.uid + "&start_utc=" + stamp(began), []int64{2, 1}},
			{"uid=" + boss.uid + "&start_utc=" + stamp(began), []int64{6, 5, 1}},
			{"start_utc=" + stamp(middle), []int64{6, 5}},
			{"start_utc=" + stamp(began) + "&end_utc=" + stamp(middle), []int64{3, 2, 1}},
			{"act=token&uid=" + ids.New(), nil},
			{"act=&uid=&start_utc=" + stamp(middle) + "&end_utc=", []int64{6, 5}},
		} {
			for _, limit := range []string{"100", "1"} {
				var got []int64
				for next := ""; ; {
					page := as[wire.AuditList](boss, 200, "GET", log+"?limit="+limit+"&"+c.query+next, "")
					for _, r := range page.Data {
						got = append(got, r.Seq-newest)
					}
					if !page.HasMore {
						break
					}
					next = "&cursor=" + *page.NextCursor
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("%s by %s = %v, want %v", c.query, limit, got, c.want)
				}
			}
		}

		next := *as[wire.AuditList](boss, 200, "GET", log+"?limit=1&act=token", "").NextCursor
		for _, query := range []string{"", "act=token.created", "act=team", "act=token&uid=" + boss.uid, "act=token&start_utc=" + stamp(middle), "act=token&end_utc=" + stamp(middle)} {
			boss.invalid("GET", log+"?"+query+"&cursor="+next, "", "cursor")
		}
		boss.invalid("GET", "/companies/"+second+"/audit?act=token&cursor="+next, "", "cursor")
		boss.invalid("GET", log+"?act=fly&uid=x&start_utc=yesterday&end_utc=2026-11-15&limit=0", "", "act", "end_utc", "limit", "start_utc", "uid")
		boss.invalid("GET", log+"?act=token&act=team", "", "act")
		boss.invalid("GET", log+"?act=token.%25", "", "act")
		boss.invalid("GET", log+"?act=%00", "", "act")
	})
}

// TestWebhookSecretsAreRecorded: who makes or replaces the secret of an account
// is in the log, and of a team's in its company's; who reads it is not.
func TestWebhookSecretsAreRecorded(t *testing.T) {
	eachDatabase(t, func(t *testing.T, s *service) {
		boss := s.signedIn("boss@example.com")
		id := s.site.Company("Fox", company.TeamPlan)
		s.site.Admit(id, "boss@example.com", company.ManageMembers)
		team := s.site.Team(id, "Film", "manager", "boss@example.com")
		_, token := s.site.Token("boss@example.com", id)
		script := caller{s, boss.uid, token}
		for range 2 {
			script.do(200, "GET", "/webhook-secret?team_id="+team, "")
			boss.do(200, "GET", "/webhook-secret", "")
		}
		boss.do(200, "POST", "/webhook-secret/rotate?team_id="+team, "")
		boss.do(200, "POST", "/webhook-secret/rotate", "")
		company := as[wire.AuditList](boss, 200, "GET", "/companies/"+id+"/audit?act=webhook_secret", "").Data
		if len(company) != 2 || company[0].Act != "webhook_secret.rotated" || company[1].Act != "webhook_secret.made" {
			t.Fatalf("the company's log = %+v", company)
		}
		for _, r := range company {
			if *r.ActorID != boss.uid || r.PersonID != nil || r.Address == nil || r.Details["account"] != team {
				t.Errorf("record = %+v", r)
			}
		}
		var all []audit.Record
		if err := s.db.Read(t.Context(), func(tx *sqldb.Tx) (err error) {
			all, err = audit.List(t.Context(), tx, audit.Filter{PersonID: boss.uid, Acts: audit.Named("webhook_secret"), Limit: 10})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if len(all) != 4 || all[0].Act != audit.WebhookSecretRotated || all[0].PersonID != boss.uid || all[0].CompanyID != "" || all[2].Act != audit.WebhookSecretMade || all[2].CompanyID != "" {
			t.Errorf("the whole log = %+v", all)
		}
	})
}
