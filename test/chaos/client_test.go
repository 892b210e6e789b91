package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"time"
)

// client does what a person's program would, one call after the other.
type client struct {
	w      *installation
	p      *person
	number int
	chance *rand.Rand

	orders  []*order // all it made
	runs    []*ticket
	uploads map[*account][]string
}

// order is a create that a client means to happen once.
type order struct {
	id      string
	p       *person
	account *account
	key     string
	body    []byte
	kind    string
	plan    plan
	inputs  map[string]any // of a flow
	retryOf string         // the run whose finished steps a flow takes over, or ""
	known   bool           // whether the last try was answered
}

// plan is what a run shall do.
type plan struct {
	results   int // asked for
	delivered int // by the engine, when it succeeds
	fails     bool
	webhook   bool
	echoes    bool // the first result is the file that came with the order
	brief     bool // its engine never takes long
	flow      *flowPlan
}

// hold is what the run holds at its start.
func (p plan) hold() int64 {
	if p.flow != nil {
		return p.flow.hold()
	}
	return int64(p.results) * unit
}

// ticket is a run that was accepted.
type ticket struct {
	account *account
	id      string
	path    string
	next    time.Time // when it may be asked for
	order   *order
	isEnded bool // the client was told so
}

func newClient(w *installation, p *person, number int) *client {
	return &client{w: w, p: p, number: number, chance: rand.New(rand.NewPCG(w.seed, uint64(number)+1)), uploads: map[*account][]string{}}
}

// work makes calls until stop is closed.
func (c *client) work(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(between(c.chance, 100*time.Millisecond, 700*time.Millisecond)):
		}
		switch n := c.chance.IntN(100); {
		case n < 60 && c.w.hasRoom():
			c.create(stop)
		case n < 85:
			c.poll()
		case n < 92:
			c.cancel()
		case n < 95:
			c.balance()
		default:
			c.upload()
		}
	}
}

// hasRoom reports whether more runs may be accepted before the next fault. A
// long test with several orders a second would use up the hourly limits of its
// people, and most of its faults would meet idle processes.
func (w *installation) hasRoom() bool {
	return w.perFault == 0 || w.accepted.Load() < int64(w.perFault)*(1+w.rounds.Load())
}

// server is the one that the balancer happens to choose.
func (c *client) server() *server { return c.w.servers[c.chance.IntN(len(c.w.servers))] }

// create makes an order and sees it through: a try whose outcome is unknown is
// followed by another, if there is a key to make that safe.
func (c *client) create(stop <-chan struct{}) {
	o := c.order()
	c.orders = append(c.orders, o)
	refused := 0
	for {
		k := c.try(o)
		switch {
		case k.Status == http.StatusAccepted:
			if o.key != "" && c.chance.IntN(6) == 0 {
				c.try(o) // the client forgot that it had an answer
			}
			return
		case o.key == "":
			return
		case k.Status == http.StatusServiceUnavailable: // it may have happened nevertheless
		case k.Status == http.StatusTooManyRequests || k.Status == http.StatusConflict:
			if refused++; refused > 2 {
				return
			}
		case k.Status != 0:
			return
		}
		select {
		case <-stop:
			return
		case <-time.After(between(c.chance, 50*time.Millisecond, 600*time.Millisecond)):
		}
	}
}

// resolve asks again for what is unknown, until it is known.
func (c *client) resolve() {
	for _, o := range c.orders {
		for tries := 0; o.key != "" && !o.known && tries < 60; tries++ {
			if k := c.try(o); k.Status != 0 && !o.known {
				<-time.After(500 * time.Millisecond)
			}
		}
		if o.key != "" && !o.known {
			c.w.t.Errorf("order %s is never answered", o.id)
		}
	}
}

// try sends an order once.
func (c *client) try(o *order) *call {
	k := &call{Client: c.number, Op: "create", Order: o.id, Key: o.key, Method: "POST", Path: "/api/v2/generate" + o.account.query(), account: o.account}
	c.w.send(c.server(), k, o.body, o.kind)
	if k.Status == http.StatusAccepted {
		v := k.decoded(c.w.t)
		k.Run = v["request_id"].(string)
		c.w.accepted.Add(1)
		c.runs = append(c.runs, &ticket{account: o.account, id: k.Run, path: path(v["status_url"].(string)), next: time.Now().Add(seconds(k.retryAfter)), order: o})
	}
	o.known = !k.isUnknown() && k.Status != http.StatusConflict
	c.w.log.add(k)
	return k
}

func (c *client) poll() {
	if len(c.runs) == 0 {
		return
	}
	run := c.runs[len(c.runs)-1-c.chance.IntN(min(len(c.runs), 8))]
	if time.Now().Before(run.next) && c.chance.IntN(10) > 0 {
		return // a poll that is too early costs as much as a create
	}
	k := &call{Client: c.number, Op: "poll", Method: "GET", Path: run.path, Run: run.id, account: run.account}
	c.w.send(c.server(), k, nil, "")
	run.next = time.Now().Add(seconds(k.retryAfter))
	run.isEnded = run.isEnded || k.Status == http.StatusOK && k.status() != "pending"
	c.w.log.add(k)
}

func (c *client) cancel() {
	if len(c.runs) == 0 {
		return
	}
	run := c.runs[len(c.runs)-1]
	k := &call{Client: c.number, Op: "cancel", Method: "POST", Path: "/api/v2/generate/" + run.id + "/cancel" + run.account.query(), Run: run.id, account: run.account}
	c.w.send(c.server(), k, nil, "")
	c.w.log.add(k)
}

// balance reads what an account has.
func (c *client) balance() {
	a := c.p.accounts[c.chance.IntN(2)]
	k := &call{Client: c.number, Op: "balance", Method: "GET", Path: "/api/v2/me", account: a}
	c.w.send(c.server(), k, nil, "")
	c.w.log.add(k)
}

// watch lists the newest runs of an account again and again until stop is
// closed, so that the time of each change is known within narrow bounds.
func (w *installation) watch(a *account, number int, stop <-chan struct{}) {
	chance := rand.New(rand.NewPCG(w.seed, uint64(number)+1))
	for {
		select {
		case <-stop:
			return
		case <-time.After(between(chance, time.Second, 2*time.Second)):
		}
		k := &call{Client: number, Op: "list", Method: "GET", Path: "/api/v2/generations?limit=30&team_id=" + a.team, account: a}
		w.send(w.someServer(chance), k, nil, "")
		if k.Status == http.StatusOK {
			k.listed = map[string]string{}
			for _, one := range k.decoded(w.t)["data"].([]any) {
				r := one.(record)
				k.listed[r["request_id"].(string)] = r["status"].(string)
			}
			k.body = nil
		}
		w.log.add(k)
	}
}

func (c *client) upload() {
	a := c.p.accounts[c.chance.IntN(2)]
	k := &call{Client: c.number, Op: "upload", Method: "POST", Path: "/api/v2/uploads" + a.query(), account: a}
	c.w.send(c.server(), k, c.picture(), "image/png")
	if k.Status == http.StatusCreated {
		c.uploads[a] = append(c.uploads[a], k.decoded(c.w.t)["id"].(string))
	}
	c.w.log.add(k)
}

// order thinks of a run.
func (c *client) order() *order {
	o := &order{id: fmt.Sprintf("%d-%d", c.number, len(c.orders)), p: c.p, account: c.p.accounts[0], kind: "application/json"}
	if c.chance.IntN(4) == 0 {
		o.account = c.p.accounts[1]
	}
	if c.chance.IntN(4) > 0 {
		o.key = "key-" + o.id
	}
	o.plan = plan{results: 1 + c.chance.IntN(3), webhook: c.chance.IntN(2) == 0 && !c.w.noEvents}
	if c.chance.IntN(100) < c.w.flowShare {
		c.flowOrder(o)
		return o
	}
	o.plan.delivered = 1 + c.chance.IntN(o.plan.results)
	o.plan.fails = c.chance.IntN(8) == 0
	inputs := map[string]any{}
	file := []byte(nil)
	switch uploads := c.uploads[o.account]; {
	case c.chance.IntN(5) == 0:
		file = c.picture()
		inputs["picture"] = map[string]any{"kind": "MULTIPART", "file_index": 0}
	case len(uploads) > 0 && c.chance.IntN(4) == 0:
		inputs["picture"] = map[string]any{"kind": "UPLOAD_REF", "id": uploads[c.chance.IntN(len(uploads))]}
	}
	o.plan.echoes = inputs["picture"] != nil
	inputs["script"] = c.script(o.plan)
	body := map[string]any{
		"tool_id": c.w.tool, "tool_fields_hash": c.w.hash, "num_results": o.plan.results, "inputs": inputs,
		"metadata": map[string]any{"order": o.id},
	}
	if o.plan.webhook {
		body["webhook_url"] = "https://" + c.w.sinkProxy.address + "/hook"
	}
	var err error
	if o.body, err = json.Marshal(body); err == nil && file != nil {
		o.kind, o.body, err = form(o.body, file)
	}
	if err != nil {
		c.w.t.Error(err)
	}
	return o
}

// script is what the engine does: it says that it began, takes a while and
// delivers, or fails.
func (c *client) script(p plan) string {
	steps := []string{fmt.Sprintf(`{"count_to": %q}`, c.w.count)}
	slow := c.chance.IntN(3) > 0
	if !p.brief && c.chance.IntN(4) == 0 { // long enough to be cancelled, or to outlive its worker
		steps = append(steps, fmt.Sprintf(`{"wait": %q}`, between(c.chance, time.Second, 3*time.Second)))
	}
	for i := range p.delivered {
		if slow {
			steps = append(steps, fmt.Sprintf(`{"wait": %q}`, between(c.chance, 50*time.Millisecond, 500*time.Millisecond)))
		}
		if p.fails && i == p.delivered-1 {
			steps = append(steps, `{"fail": {"code": "ENGINE_FAILED", "message": "It is broken."}}`)
			break
		}
		result := `{"output": {"kind": "png", "width": 64, "height": 48}}`
		if p.echoes && i == 0 {
			result = `{"output": {"echo": "picture"}}`
		}
		steps = append(steps, result, fmt.Sprintf(`{"progress": %v}`, float64(i+1)/float64(p.delivered)))
	}
	return "[" + strings.Join(steps, ",") + "]"
}

// picture is a small PNG, seldom the same twice.
func (c *client) picture() []byte {
	m := image.NewGray(image.Rect(0, 0, 16, 16))
	for i := range m.Pix {
		m.Pix[i] = color.Gray{Y: uint8(c.chance.Uint32())}.Y
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		c.w.t.Error(err)
	}
	return b.Bytes()
}

func form(payload, file []byte) (kind string, body []byte, err error) {
	var b bytes.Buffer
	m := multipart.NewWriter(&b)
	if err := m.WriteField("payload", string(payload)); err != nil {
		return "", nil, err
	}
	part, err := m.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="files"; filename="a.png"`}, "Content-Type": {"image/png"}})
	if err != nil {
		return "", nil, err
	}
	if _, err := part.Write(file); err != nil {
		return "", nil, err
	}
	err = m.Close()
	return m.FormDataContentType(), b.Bytes(), err
}

// path is an address without its host: clients go through a balancer.
func path(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	_, rest, _ = strings.Cut(rest, "/")
	return "/" + rest
}

func seconds(text string) time.Duration {
	n, err := strconv.Atoi(text)
	if err != nil {
		return time.Second
	}
	return time.Duration(n) * time.Second
}
