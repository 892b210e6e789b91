package api_test

import (
	"context"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"atelier/internal/base/audit"
	"atelier/internal/base/ids"
	"atelier/internal/base/sqldb"
	"atelier/internal/notify/webhook"
	"atelier/internal/run/generation"
	"atelier/internal/web/api/wire"
)

// told is an event as it arrived.
type told struct {
	header http.Header
	body   []byte
}

// receive lets runs of this runFixture be told to a server of the test's own.
func (m *runFixture) receive(status int) (address string, events <-chan told) {
	m.t.Helper()
	arrived := make(chan told, 16)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		arrived <- told{r.Header, b}
		w.WriteHeader(status)
	}))
	m.t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	p := m.parts.Runs.Parts
	p.Guard = webhook.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	sender := webhook.New(webhook.Options{
		DB: m.db, Secrets: m.parts.Secrets, SecretMade: webhook.RecordFirstSecret, Guard: p.Guard, Now: time.Now, RootCAs: roots, Grace: time.Millisecond,
		Events: m.parts.Runs,
	})
	p.Ended, p.Budgets.Wake, p.Budgets.Guard = sender.WakeSender, sender.WakeSender, p.Guard
	*m.parts.Runs = *generation.New(p)
	ctx, stop := context.WithCancel(context.WithoutCancel(m.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- sender.Run(ctx) }()
	m.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			m.t.Errorf("sender: %v", err)
		}
	})
	return server.URL, arrived
}

// settled waits until an event has had so many attempts.
func (m *runFixture) settled(id string, attempts int64) wire.GenerationWebhook {
	m.t.Helper()
	for range 500 {
		rec := getJSON[wire.Generation](m.service, "/api/v2/generate/"+id)
		if rec.Webhook != nil && rec.Webhook.Attempts == attempts {
			return *rec.Webhook
		}
		<-time.After(10 * time.Millisecond)
	}
	m.t.Fatalf("the event of %s does not have %d attempts", id, attempts)
	return wire.GenerationWebhook{}
}

func TestWebhooks(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		address, events := m.receive(http.StatusNoContent)
		m.work()
		const metadata = `{"n":12345678901234567890.10,"<b>":"\u2028"}`
		for kind, script := range map[string]string{"succeeded": `[{"output":{"kind":"png"}}]`, "failed": `[{"fail":{}}]`} {
			id := m.run("", m.body("one", steps(script)+`,"metadata":`+metadata+`,"webhook_url":"`+address+`/hook"`))
			rec := m.finish("", id)
			e := <-events
			secret := getJSON[wire.WebhookSecret](m.service, "/api/v2/webhook-secret")
			hook, err := standard.NewWebhook(secret.Secret)
			if err != nil {
				t.Fatal(err)
			}
			if err := hook.Verify(e.body, e.header); err != nil {
				t.Errorf("the signature: %v", err)
			}
			got := decodeAnswer[wire.WebhookEvent](t, answer{body: e.body})
			if string(got.Type) != "generation."+kind || got.Data.RequestID != id || string(got.Data.Status) != kind || !sameJSON(t, got.Data.Metadata, []byte(metadata)) || len(got.Data.Outputs) != len(rec.Outputs) {
				t.Errorf("the event is %s", e.body)
			}
			for _, o := range got.Data.Outputs {
				if a := m.fetch("GET", *o.URL); a.StatusCode != 200 {
					t.Errorf("the file of an event = %d", a.StatusCode)
				}
			}
			if w := m.settled(id, 1); w.State != "delivered" {
				t.Errorf("the webhook is %+v", w)
			}
			path := "/api/v2/generate/" + id + "/webhook-attempts"
			m.sendRequest("POST", path+"/redeliver").checkStatus(t, "redeliver", 202, "")
			again := <-events
			if again.header.Get("Webhook-Id") != e.header.Get("Webhook-Id") {
				t.Errorf("the event has two ids, %s and %s", e.header.Get("Webhook-Id"), again.header.Get("Webhook-Id"))
			}
			m.settled(id, 2)
			list := getJSON[wire.WebhookAttemptList](m.service, path+"?limit=1")
			next := getJSON[wire.WebhookAttemptList](m.service, path+"?limit=1&cursor="+*list.NextCursor)
			if len(list.Data) != 1 || len(next.Data) != 1 || next.HasMore || list.Data[0].ID == next.Data[0].ID || *list.Data[0].StatusCode != 204 || list.Data[0].Error != nil {
				t.Errorf("the attempts are %+v, then %+v", list, next)
			}
			m.sendRequest("GET", path+"?limit=1&cursor=x").checkStatus(t, "a broken cursor", 400, "INVALID_REQUEST")
		}
		silent := m.done("", m.body("one", ""))
		if silent.Webhook != nil {
			t.Errorf("a run without a webhook has %+v", silent.Webhook)
		}
		path := "/api/v2/generate/" + silent.RequestID + "/webhook-attempts"
		if got := getJSON[wire.WebhookAttemptList](m.service, path); len(got.Data) != 0 {
			t.Errorf("it has attempts %+v", got)
		}
		m.sendRequest("POST", path+"/redeliver").checkStatus(t, "redeliver nothing", 404, "NOT_FOUND")
	})
}

func TestWebhookThatIsGone(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		address, events := m.receive(http.StatusGone)
		m.work()
		id := m.run("", m.body("one", `,"webhook_url":"`+address+`"`))
		<-events
		if w := m.settled(id, 1); w.State != "gone" {
			t.Errorf("the webhook is %+v", w)
		}
		a := getJSON[wire.WebhookAttemptList](m.service, "/api/v2/generate/"+id+"/webhook-attempts").Data[0]
		if *a.StatusCode != 410 || a.Error == nil {
			t.Errorf("the attempt is %+v", a)
		}
	})
}

func TestWebhookSecrets(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		first := getJSON[wire.WebhookSecret](m.service, "/api/v2/webhook-secret")
		if again := getJSON[wire.WebhookSecret](m.service, "/api/v2/webhook-secret"); again != first || !strings.HasPrefix(first.Secret, "whsec_") || first.PreviousValidUntil != nil {
			t.Errorf("the secret is %+v, then %+v", first, again)
		}
		second := decodeAnswer[wire.WebhookSecret](t, m.sendRequest("POST", "/api/v2/webhook-secret/rotate").checkStatus(t, "rotate", 200, ""))
		if second.Secret == first.Secret || second.PreviousValidUntil == nil {
			t.Errorf("after rotation it is %+v", second)
		}
		bert := m.as(m.addPerson("bert@example.com"))
		if got := getJSON[wire.WebhookSecret](bert.service, "/api/v2/webhook-secret"); got.Secret == second.Secret {
			t.Error("two people have one secret")
		}
		team, tokens := m.team("Look", "bert@example.com")
		member := m.as(tokens[0])
		for _, x := range []struct{ method, path string }{{"GET", ""}, {"POST", "/rotate"}} {
			m.unchanged("the team's secret", func() {
				if a := member.sendRequest(x.method, "/api/v2/webhook-secret"+x.path+"?team_id="+team).checkStatus(t, "by a member", 403, "FORBIDDEN"); a.readError(t).Details["reason"] != "permission" {
					t.Errorf("by a member = %s", a.body)
				}
				member.sendRequest(x.method, "/api/v2/webhook-secret"+x.path+"?team_id="+ids.New()).checkStatus(t, "of another team", 403, "FORBIDDEN")
			})
		}
	})
}

// TestFirstEventMakesASecret: it is recorded as one that somebody asked for is,
// without an actor.
func TestFirstEventMakesASecret(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		address, events := m.receive(http.StatusNoContent)
		m.work()
		team, tokens := m.team("Look", "anna@example.com")
		bert := m.as(tokens[0])
		for range 2 {
			m.done("", m.body("one", `,"webhook_url":"`+address+`/hook"`))
			<-events
			bert.done("?team_id="+team, m.body("one", `,"webhook_url":"`+address+`/hook"`))
			<-events
		}
		getJSON[wire.WebhookSecret](m.service, "/api/v2/webhook-secret")
		uid := getJSON[wire.Identity](m.service, "/api/v2/me").User.UID
		var all []audit.Record
		if err := m.db.Read(t.Context(), func(tx *sqldb.Tx) (err error) {
			all, err = audit.List(t.Context(), tx, audit.Filter{Acts: audit.Named("webhook_secret"), Limit: 10})
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if len(all) != 2 || all[1].PersonID != uid || all[1].CompanyID != "" || all[0].PersonID != "" || all[0].CompanyID == "" {
			t.Errorf("records = %+v", all)
		}
		for _, r := range all {
			if r.Act != audit.WebhookSecretMade || r.ActorID != "" {
				t.Errorf("record = %+v", r)
			}
		}
	})
}

// TestWebhookDeliveries lists deliveries in every state.
func TestWebhookDeliveries(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		address, events := m.receive(204)
		m.work()
		hook := `,"webhook_url":"` + address + `/secret-path?token=1"`
		var runs []string
		for range 2 {
			id := m.run("", m.body("one", hook))
			<-events
			m.settled(id, 1)
			runs = append(runs, id)
		}
		m.done("", m.body("one", ""))
		all := getJSON[wire.WebhookDeliveryList](m.service, "/api/v2/webhook-deliveries")
		if len(all.Data) != 2 || all.Data[0].RequestID != runs[1] || all.Data[1].RequestID != runs[0] {
			t.Fatalf("deliveries = %+v, want %v, newest first", all, runs)
		}
		d := all.Data[0]
		if d.Status != "delivered" || d.Attempts != 1 || "https://"+d.Host != address || *d.StatusCode != 204 || d.Error != nil || d.LastAttempt == nil || d.NextAttempt != nil {
			t.Errorf("delivery = %+v", d)
		}
		first := getJSON[wire.WebhookDeliveryList](m.service, "/api/v2/webhook-deliveries?limit=1&status=delivered")
		second := getJSON[wire.WebhookDeliveryList](m.service, "/api/v2/webhook-deliveries?limit=1&status=delivered&cursor="+*first.NextCursor)
		if !first.HasMore || second.HasMore || first.Data[0] == second.Data[0] || second.Data[0].RequestID != runs[0] {
			t.Errorf("pages = %+v, %+v", first, second)
		}
		m.sendRequest("POST", "/api/v2/generate/"+d.RequestID+"/webhook-attempts/redeliver").checkStatus(t, "redeliver", 202, "")
		<-events
		m.settled(d.RequestID, 2)
		if got := getJSON[wire.WebhookDeliveryList](m.service, "/api/v2/webhook-deliveries").Data[0]; got.Attempts != 2 || got.Status != "delivered" {
			t.Errorf("after a redelivery = %+v", got)
		}

		m.exec(`DELETE FROM webhook_attempt`)
		for status, change := range map[string]string{
			"pending":   `UPDATE webhook_event SET state = 'waiting', next_at = 4102444800000000`,
			"failing":   `INSERT INTO webhook_attempt (id, event_id, at, duration_ms, error) SELECT 'a' || id, id, 5, 1, 'timeout' FROM webhook_event`,
			"exhausted": `UPDATE webhook_event SET state = 'exhausted', next_at = NULL`,
			"gone":      `UPDATE webhook_event SET state = 'gone', next_at = NULL`,
		} {
			if status == "failing" {
				m.exec(`UPDATE webhook_event SET state = 'waiting', next_at = 4102444800000000`)
			}
			m.exec(change)
			for _, asked := range []string{"", "pending", "failing", "delivered", "exhausted", "gone"} {
				got := getJSON[wire.WebhookDeliveryList](m.service, "/api/v2/webhook-deliveries?status="+asked).Data
				if want := asked == "" || asked == status; (len(got) == 2) != want || len(got) > 0 && (string(got[0].Status) != status || (got[0].NextAttempt != nil) != (status == "pending" || status == "failing")) {
					t.Errorf("%s deliveries, asked for %q: %+v", status, asked, got)
				}
			}
			m.exec(`DELETE FROM webhook_attempt`)
		}
		m.site.Person("bert@example.com")
		_, bert := m.site.Token("bert@example.com", "")
		if got := getJSON[wire.WebhookDeliveryList](m.as(bert).service, "/api/v2/webhook-deliveries"); len(got.Data) != 0 {
			t.Errorf("somebody else sees %+v", got)
		}
		m.as(bert).sendRequest("GET", "/api/v2/webhook-deliveries?status=delivered&cursor="+*first.NextCursor).checkStatus(t, "a cursor of somebody else", 400, "INVALID_REQUEST")
		for _, query := range []string{"status=waiting", "status=x", "limit=0", "cursor=x"} {
			m.sendRequest("GET", "/api/v2/webhook-deliveries?"+query).checkStatus(t, query, 400, "INVALID_REQUEST")
		}
	})
}
