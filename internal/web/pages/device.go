package pages

import (
	"errors"
	"strings"

	"atelier/internal/account/devicelogin"
	"atelier/internal/base/fault"
	"atelier/internal/people/device"
)

// approval is what the page shows on which a person decides about a device.
type approval struct {
	device.Grant
	Code string
}

// deviceForm asks about the device whose code the address has, or for the code.
// It never approves: whoever sent the address may have started that device.
func (s *server) deviceForm(v *visit) error {
	code := v.query("code")
	// Any site can have a browser open this address with wrong codes, which count
	// against the person. Those are looked up once the person sends them.
	if code == "" || v.r.Header.Get("Sec-Fetch-Site") == "cross-site" {
		return v.show("code", code)
	}
	g, err := s.Accounts.Devices.OpenGrant(v.r.Context(), v.principal(), code)
	if err != nil {
		return v.refuseCode(code, err)
	}
	return v.show("device", approval{g, tidy(code)})
}

// tidy writes a code that is right the way that devices show it.
func tidy(code string) string {
	code = strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, strings.ToUpper(code))
	return code[:len(code)/2] + "-" + code[len(code)/2:]
}

// approve is what the button that lets a device in sends.
const approve = "approve"

func (s *server) decideDevice(v *visit) error {
	yes := v.form.Get("verdict") == approve
	code := v.form.Get("code")
	_, err := s.Accounts.Devices.DecideGrant(v.r.Context(), v.principal(), devicelogin.Answer{GrantID: v.form.Get("grant"), UserCode: code, Approve: yes})
	if err != nil {
		return v.refuseCode("", err)
	}
	if !yes {
		return v.show("message", refused)
	}
	return v.show("message", approved)
}

// What becomes of a device, for the person who decided about it.
var (
	refused = message{
		Title: "Refused",
		Alert: true,
		Text:  "You refused the device: it was not signed in. If somebody sent you its code, they may have tried to get into your account.",
		Link:  "/devices",
		Label: "See your devices",
	}
	approved = message{
		Title: "Approved",
		Text:  "You can go back to your device: it will be signed in in a moment. Your devices are listed under Devices, where you can sign them out.",
		Link:  "/devices",
		Label: "See your devices",
	}
)

// refuseCode answers for a code that can't be decided about. Whoever has decided
// themselves sees again what they decided; others can type another code.
func (v *visit) refuseCode(code string, err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	v.rec.Err = err
	switch f.Details["reason"] {
	case "refused":
		return v.answer(statusOf(f.Code), "message", refused, nil)
	case "approved":
		return v.answer(statusOf(f.Code), "message", approved, nil)
	}
	return v.again("code", code, err, fault.NotFound)
}
