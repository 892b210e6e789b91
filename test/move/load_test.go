package move_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"atelier/client"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/blob/blobtest"
	"atelier/internal/testkit/watch"
	"atelier/test/program"
)

// scripted is a tool whose runs take a moment and have one small picture.
const scripted = `name: Scripted
price: {type: FREE}
output: {type: IMG, mime_types: [image/png]}
engine: {name: script}
fields:
  - {key: script, type: TEXT_AREA, label: Script, max_length: 1000}
`

const script = `[{"wait": "200ms"}, {"output": {"kind": "png", "width": 8, "height": 8}}]`

// creates are the runs that a service has accepted.
type creates struct {
	mu   sync.Mutex
	sent map[string]time.Time // when the create was sent, by the id of the run
}

// ids returns the runs that were accepted until now.
func (c *creates) ids() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.sent {
		all = append(all, id)
	}
	return all
}

// createRuns has people create runs, one after the other, until ctx ends. wait
// returns after the last answer.
func (m machine) createRuns(ctx context.Context, address, token string) (c *creates, wait func()) {
	m.Helper()
	service, err := client.New(client.Options{URL: "http://" + address, Token: token})
	if err != nil {
		m.Fatal(err)
	}
	var tool *client.ToolDetail
	for one, err := range service.Tools.All(m.Context(), client.ToolsListParams{}) {
		if err == nil {
			tool, err = service.Tools.Get(m.Context(), one.ID)
		}
		if err != nil {
			m.Fatal(err)
		}
	}
	c = &creates{sent: map[string]time.Time{}}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for tick := time.Tick(50 * time.Millisecond); ctx.Err() == nil; <-tick {
				sent := time.Now()
				run, err := service.Runs.Create(context.WithoutCancel(ctx), client.RunRequest{
					Tool:       tool.ID,
					FieldsHash: tool.ToolFieldsHash,
					Results:    1,
					Inputs:     map[string]any{"script": script},
				})
				if err != nil {
					m.Errorf("create: %v", err)
					return
				}
				c.mu.Lock()
				c.sent[run.RequestID] = sent
				c.mu.Unlock()
			}
		})
	}
	return c, group.Wait
}

// runIDs returns the runs of an installation, each with its status.
func (m machine) runIDs(data string) map[string]string {
	m.Helper()
	db, err := sqldb.Open(m.Context(), m.file(data), sqldb.Options{MaxConns: 2, Now: time.Now, ReadOnly: true})
	if err != nil {
		m.Fatal(err)
	}
	defer db.Close()
	all := map[string]string{}
	err = db.Read(m.Context(), func(tx *sqldb.Tx) error {
		clear(all)
		return tx.EachRow(m.Context(), `SELECT id, status FROM run`, nil, func(row sqldb.Scanner) error {
			var id, status string
			err := row.Scan(&id, &status)
			all[id] = status
			return err
		})
	})
	if err != nil {
		m.Fatal(err)
	}
	return all
}

// TestContinuousBackupUnderLoad copies the changes of a service while people
// create runs. As of a moment in between, the restored installation has every
// run that was copied before and none that was asked for later; the newest one
// has all of them. Both have all their files, break no invariant, and go on to
// work.
func TestContinuousBackupUnderLoad(t *testing.T) {
	m := newMachine(t)
	changes := blobtest.S3(t).Address()
	files := blobtest.S3(t).Address()
	tools := filepath.Join(m.folder, "tools")
	if err := errors.Join(os.Mkdir(tools, 0o700), os.WriteFile(filepath.Join(tools, "scripted.yaml"), []byte(scripted), 0o600)); err != nil {
		t.Fatal(err)
	}
	m.env = append(m.env, "ATELIER_BLOBS="+files, "ATELIER_TOOLS="+tools, "ATELIER_CATALOG_BUILTIN=false", "ATELIER_LIMITS_REQUESTS_PER_MINUTE=0",
		"ATELIER_LIMITS_CREATE_PER_MINUTE=1000000", "ATELIER_LIMITS_CREATE_PER_HOUR=1000000", "ATELIER_LIMITS_ACTIVE_RUNS=1000000")
	m.do("migrate", "--data", "live")
	m.addPerson("live", "anna")
	token := m.do("admin", "token", "create", "--data", "live", "--email", "anna@example.com", "--name", "test")["token"].(string)
	address := program.FreeAddress(t)
	stopService := m.serve("--data", "live", "--listen", address)

	ctx, stopLoad := context.WithCancel(t.Context())
	defer stopLoad()
	made, wait := m.createRuns(ctx, address, token)
	defer wait()
	defer stopLoad()

	copies := 0
	restore := func(at string) (data string, runs map[string]string) {
		copies++
		data = fmt.Sprintf("copy-%d", copies)
		args := []string{"restore", changes, "--data", data, "--secret-file", filepath.Join(m.folder, "live", "keys", "secret")}
		if at != "" {
			args = append(args, "--at", at)
		}
		if _, err := m.try(args...); err != nil {
			m.Log(err)
			return data, nil
		}
		return data, m.runIDs(data)
	}
	stopBackup := m.background(m.command("backup", "--continuous", changes, "--data", "live"), func() bool { _, runs := restore(""); return len(runs) > 0 })

	before := made.ids()
	watch.Until(t, "what was created is copied", func() bool {
		_, runs := restore("")
		return hasAll(runs, before)
	})
	moment := time.Now()
	enough := len(made.ids()) + 30
	watch.Until(t, "more runs", func() bool { return len(made.ids()) >= enough || t.Failed() })
	stopLoad()
	wait()
	stopBackup()

	data, between := restore(moment.UTC().Format(time.RFC3339Nano))
	if !hasAll(between, before) {
		t.Errorf("as of %v there are %d runs; some of the %d that were copied before are missing", moment, len(between), len(before))
	}
	for id, sent := range made.sent {
		if _, ok := between[id]; ok && sent.After(moment) {
			t.Errorf("as of %v there is run %s, which was asked for at %v", moment, id, sent)
		}
	}
	stopService()
	newest, all := restore("")
	if !hasAll(all, made.ids()) {
		t.Errorf("the newest copy has %d runs, and %d were accepted", len(all), len(made.sent))
	}
	t.Logf("%d runs were accepted; the copy of the moment has %d, the newest copy has %d", len(made.sent), len(between), len(all))

	for _, data := range []string{data, newest} {
		m.check("--data", data, "--files")
		stop := m.serve("--data", data)
		watch.Until(t, "all runs of "+data+" to end", func() bool {
			for _, status := range m.runIDs(data) {
				if status == "pending" {
					return false
				}
			}
			return true
		})
		stop()
		for id, status := range m.runIDs(data) {
			if status != "succeeded" {
				t.Errorf("run %s of %s ended as %s", id, data, status)
			}
		}
		m.check("--data", data, "--files")
	}
}

// hasAll reports whether all of these runs are there.
func hasAll(runs map[string]string, ids []string) bool {
	for _, id := range ids {
		if _, ok := runs[id]; !ok {
			return false
		}
	}
	return true
}
