package api_test

import (
	"bytes"
	"io"
	"sync"
	"testing"

	"atelier/internal/base/sqldb"
	"atelier/internal/file/quota"
	"atelier/internal/web/api/wire"
)

// quota gives every account so many bytes.
func (m *runFixture) quota(l quota.Limits) {
	m.parts.Library.Storage = l
	m.parts.Runs.Settings.Storage = l
	m.parts.Accounts.Settings.Storage = l
	m.parts.Accounts.Profiles.Storage = l
}

// stored is what the personal account of the caller stores.
func (m *runFixture) stored() wire.Storage {
	m.t.Helper()
	return getJSON[wire.Identity](m.service, "/api/v2/me").Accounts[0].Storage
}

func TestUploadsAreRefusedBeforeTheyAreRead(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.quota(quota.Limits{Account: 10 << 20})
		m.unchanged("announced uploads above the quota", func() {
			for kind, path := range map[string]string{
				"application/octet-stream":        "/api/v2/uploads",
				"multipart/form-data; boundary=b": "/api/v2/uploads",
				"multipart/form-data; boundary=c": "/api/v2/generate",
			} {
				a, n := m.sendEndlessTo(path, kind, "Content-Length: 20971520\r\n", "")
				a.checkStatus(t, kind+" to "+path, 413, "STORAGE_QUOTA_EXCEEDED")
				p := a.readError(t)
				if n > 1<<20 || !a.Close || p.Retryable || p.Details["reason"] != "account" || p.Details["limit_bytes"] != 10485760.0 {
					t.Errorf("%s: %d bytes were read, closed %v: %s", path, n, a.Close, a.body)
				}
			}
		})
	})
}

func TestUploadsOfUnknownLengthStayWithinTheQuota(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.quota(quota.Limits{Account: 3 << 20})
		chunked := func(data []byte) io.Reader { return io.MultiReader(bytes.NewReader(data)) }
		m.unchanged("chunked uploads above the quota", func() {
			m.send("POST", "/api/v2/uploads", "audio/wav", chunked(tone(4<<20))).checkStatus(t, "a chunked upload", 413, "STORAGE_QUOTA_EXCEEDED")
			kind, body := form(part{name: "file", file: "a.wav", kind: "audio/wav", data: string(tone(4 << 20))})
			m.send("POST", "/api/v2/uploads", kind, body).checkStatus(t, "a form", 413, "STORAGE_QUOTA_EXCEEDED")
			kind, body = form(payload(m.body("one", `,"inputs":{"sound":{"kind":"MULTIPART","file_index":0}}`)), file(tone(4<<20)))
			m.send("POST", "/api/v2/generate", kind, chunked(body.Bytes())).checkStatus(t, "a run with a file", 413, "STORAGE_QUOTA_EXCEEDED")
			kind, body = form(payload(m.body("one", `,"inputs":{"sound":{"kind":"MULTIPART","file_index":1}}`)), file(tone(2<<20)), file(tone(2<<20)))
			m.send("POST", "/api/v2/generate", kind, chunked(body.Bytes())).checkStatus(t, "a run with two", 413, "STORAGE_QUOTA_EXCEEDED")
		})
		u := m.send("POST", "/api/v2/uploads", "audio/wav", chunked(tone(2<<20))).checkStatus(t, "one that fits", 201, "")
		if s := m.stored(); s.UsedBytes != 2<<20 || s.LimitBytes == nil || *s.LimitBytes != 3<<20 {
			t.Errorf("storage in /me = %+v", s)
		}
		m.send("POST", "/api/v2/uploads", "audio/wav", bytes.NewReader(tone(2<<20))).checkStatus(t, "another", 413, "STORAGE_QUOTA_EXCEEDED")
		m.sendRequest("DELETE", "/api/v2/uploads/"+decodeAnswer[wire.Upload](t, u).ID).checkStatus(t, "delete", 204, "")
		m.send("POST", "/api/v2/uploads", "audio/wav", bytes.NewReader(tone(2<<20))).checkStatus(t, "after the deletion", 201, "")
	})
}

// Many at once: never over the limit, and what is refused leaves no bytes.
func TestConcurrentUploadsOverTheWire(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		const size, fit = 100_000, 5
		m.quota(quota.Limits{Account: size*fit + size/2})
		var wg sync.WaitGroup
		statuses := make([]int, 24)
		for i := range statuses {
			wg.Go(func() {
				statuses[i] = m.send("POST", "/api/v2/uploads", "audio/wav", bytes.NewReader(tone(size))).StatusCode
			})
		}
		wg.Wait()
		count := map[int]int{}
		for _, s := range statuses {
			count[s]++
		}
		if count[201] != fit || count[413] != len(statuses)-fit || m.stored().UsedBytes != size*fit || m.blobs() != fit {
			t.Errorf("statuses %v, %d bytes, %d files; want %d uploads", count, m.stored().UsedBytes, m.blobs(), fit)
		}
	})
}

func TestRunsOfAFullAccount(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		u := m.upload("", tone(100_000))
		m.create(m.body("one", ""), "Idempotency-Key", "k").checkStatus(t, "before it is full", 202, "")
		m.quota(quota.Limits{Account: 100_000})
		m.unchanged("a run of a full account", func() {
			m.create(m.body("one", "")).checkStatus(t, "a run", 413, "STORAGE_QUOTA_EXCEEDED")
			m.create(m.body("one", ""), "Idempotency-Key", "k").checkStatus(t, "a replay", 202, "")
			a := m.send("POST", "/api/v2/generate/preview-cost", "application/json", bytes.NewReader([]byte(m.body("one", ""))))
			if p := decodeAnswer[wire.CostPreview](t, a); p.CanRun || p.BlockingReason == nil {
				t.Errorf("preview = %s", a.body)
			}
		})
		m.sendRequest("DELETE", "/api/v2/uploads/"+u.ID).checkStatus(t, "delete", 204, "")
		m.create(m.body("one", "")).checkStatus(t, "after a deletion", 202, "")
	})
}

// A run whose results do not fit fails and costs nothing.
func TestResultsThatDoNotFit(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		m.quota(quota.Limits{Account: 300})
		m.work()
		g := m.done("", m.body("one", ""))
		if g.Status != "failed" || g.Error == nil || g.Error.Code != "STORAGE_QUOTA_EXCEEDED" || g.TokensCharged != 0 {
			t.Errorf("generation = %+v", g)
		}
		if s := m.stored(); s.UsedBytes != 0 || m.blobs() != 0 {
			t.Errorf("%+v and %d files are left", s, m.blobs())
		}
		if b := getJSON[wire.Identity](m.service, "/api/v2/me").Accounts[0].Balance; b.Held != 0 {
			t.Errorf("%d tokens are still held", b.Held)
		}
	})
}

// While the disk is nearly full nothing new is taken, and everything else works.
func TestDiskNearlyFull(t *testing.T) {
	eachRunFixture(t, func(t *testing.T, m *runFixture) {
		u := m.upload("", picture(8, 8))
		m.create(m.body("one", ""), "Idempotency-Key", "k").checkStatus(t, "before", 202, "")
		m.full.Store(true)
		m.unchanged("requests while the disk is full", func() {
			for kind, path := range map[string]string{"application/octet-stream": "/api/v2/uploads", "multipart/form-data; boundary=b": "/api/v2/generate"} {
				a, n := m.sendEndlessTo(path, kind, "Transfer-Encoding: chunked\r\n", "")
				if a.checkStatus(t, path, 503, "UPSTREAM_UNAVAILABLE"); n > 1<<20 || a.Header.Get("Retry-After") == "" {
					t.Errorf("%s: %d bytes were read: %v", path, n, a.Header)
				}
			}
			m.create(m.body("one", "")).checkStatus(t, "a run", 503, "UPSTREAM_UNAVAILABLE")
			m.create(m.body("one", ""), "Idempotency-Key", "k").checkStatus(t, "a replay", 202, "")
		})
		m.sendRequest("DELETE", "/api/v2/uploads/"+u.ID).checkStatus(t, "delete", 204, "")
		m.full.Store(false)
		m.upload("", picture(8, 8))
	})
}

// Reports tell on their first page what the teams of the company store.
func TestReportsTellWhatTeamsStore(t *testing.T) {
	reports(t, func(t *testing.T, b *reportFixture) {
		err := b.db.Write(t.Context(), func(tx *sqldb.Tx) error {
			for i, bytes := range []int64{100, 300} {
				if err := (quota.Limits{}).ChargeAccount(t.Context(), tx, b.teams[i], bytes); err != nil {
					return err
				}
			}
			own := int64(500)
			_, err := quota.SetLimit(t.Context(), tx, b.teams[0], &own)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		storageIn := func(query string) *wire.StorageReport {
			return getJSON[wire.UsageReport](b.service, "/api/v2/reports/usage?company_id="+b.company+query).Storage
		}
		all := storageIn("")
		if all == nil || all.UsedBytes != 400 || len(all.Teams) != 2 || all.Teams[0].TeamID != b.teams[1] || all.Teams[0].UsedBytes != 300 || all.Teams[0].LimitBytes != nil ||
			all.Teams[1].LimitBytes == nil || *all.Teams[1].LimitBytes != 500 {
			t.Errorf("storage = %+v", all)
		}
		if one := storageIn("&team_id=" + b.teams[0]); one == nil || one.UsedBytes != 100 || len(one.Teams) != 1 {
			t.Errorf("storage of a team = %+v", one)
		}
	})
}
