package main

import (
	"context"
	"net"
	"time"

	"atelier/internal/account"
	"atelier/internal/account/companyadmin"
	"atelier/internal/account/devicelogin"
	"atelier/internal/account/personaldata"
	"atelier/internal/account/provisioning"
	"atelier/internal/account/signup"
	"atelier/internal/base/keyring"
	"atelier/internal/base/queue"
	"atelier/internal/base/sqldb"
	"atelier/internal/file/blob"
	"atelier/internal/money/budget"
	"atelier/internal/notify/mail"
	"atelier/internal/notify/mailqueue"
	"atelier/internal/notify/webhook"
	"atelier/internal/people/device"
	"atelier/internal/people/idtoken"
	"atelier/internal/people/oidc"
	"atelier/internal/people/principal"
)

// people has the services for people, companies and credentials. The server
// and the admin commands both use it.
type people struct {
	db           *sqldb.DB
	keys         keyring.Ring
	jobs         queue.Queue
	devices      *device.Devices
	tokens       *idtoken.Issuer
	budgets      *budget.Service
	provider     *oidc.Provider // nil if no OpenID provider is configured
	accounts     *account.Services
	companies    *companyadmin.Services
	provisioning *provisioning.Service
}

// openPeople creates the services for people. The URLs of the service must
// already be set in the settings. The services call wakeSender after they have
// added webhook events.
func (p *program) openPeople(db *sqldb.DB, keys keyring.Ring, jobs queue.Queue, wakeSender func()) *people {
	c := p.cfg
	outbox := mailqueue.Outbox{Queue: jobs, Box: keys.BoxFor(mailPurpose)}
	pp := &people{
		db:   db,
		keys: keys,
		jobs: jobs,
		devices: device.New(device.Options{
			Key:              keys.DeriveKey("device"),
			Now:              db.Now,
			MaxGrants:        c.Device.Grants,
			MaxPerNetwork:    c.Device.GrantsPerNetwork,
			PluginKindLength: c.Limits.PluginKindLength,
			OnReplay:         devicelogin.RecordReplay,
			ExpiresIn:        time.Duration(c.Device.ExpiresIn),
			Interval:         time.Duration(c.Device.Interval),
			MaxInterval:      time.Duration(c.Device.MaxInterval),
			RotateAfter:      time.Duration(c.Credentials.RefreshRotateAfter),
			Grace:            time.Duration(c.Credentials.RefreshGrace),
		}),
		// All nodes use the same issuer name, regardless of their URLs.
		tokens: idtoken.New(db, idtoken.Options{
			Box:         keys.BoxFor("signing_key"),
			Issuer:      "atelier",
			Lifetime:    time.Duration(c.Credentials.IDLifetime),
			WebLifetime: time.Duration(c.Credentials.WebLifetime),
			Now:         db.Now,
		}),
		budgets: &budget.Service{
			Guard:  webhook.NewGuard(c.Webhook.AllowNetworks),
			Wake:   wakeSender,
			Post:   outbox,
			AppURL: c.AppURL,
		},
	}
	if c.OIDC.Issuer != "" {
		pp.provider = oidc.New(oidc.Settings{
			Name:         c.OIDC.Name,
			Issuer:       c.OIDC.Issuer,
			ClientID:     c.OIDC.ClientID,
			ClientSecret: c.OIDC.ClientSecret,
			RedirectURL:  c.AppURL + "/oidc/callback",
			Timeout:      providerTimeout,
			Now:          pp.db.Now,
		})
	}
	pp.accounts = account.New(account.Parts{
		DB:       pp.db,
		Devices:  pp.devices,
		Tokens:   pp.tokens,
		Post:     outbox,
		Provider: pp.provider,
		Box:      pp.keys.BoxFor("person_identity"),
		Now:      pp.db.Now,
		Settings: account.Settings{
			AppURL:           c.AppURL,
			BaseURL:          c.BaseURL,
			Signup:           signup.Policy(c.Signup),
			RequireVerified:  c.RequireVerifiedEmail,
			NoMail:           c.SMTP.Address == "",
			SessionLifetime:  time.Duration(c.Sessions.Lifetime),
			KnownLifetime:    time.Duration(c.Sessions.Known),
			SignupGrant:      c.Tokens.SignupGrant,
			SetupGrant:       c.Tokens.SetupGrant,
			MonthlyAllowance: c.Tokens.MonthlyAllowance,
			TopUp:            c.Tokens.TopUp,
			TopUpWindow:      time.Duration(c.Tokens.TopUpWindow),
			Storage:          storageLimits(c),
			Operators:        principal.NewOperators(c.Operators),
		},
	})
	pp.companies = companyadmin.New(companyadmin.Parts{
		DB:       pp.db,
		Mail:     outbox,
		Resolver: net.DefaultResolver,
		AppURL:   c.AppURL,
		Budgets:  pp.budgets,
	})
	pp.provisioning = &provisioning.Service{DB: pp.db, Mail: outbox, AppURL: c.AppURL, EnsureAccount: pp.accounts.SignUp.VouchForPerson}
	return pp
}

// personalData returns the service that exports and deletes the data of
// people.
func (pp *people) personalData(blobs blob.Store) *personaldata.Service {
	return &personaldata.Service{DB: pp.db, Blobs: blobs, Queue: pp.jobs}
}

// providerTimeout is the time limit of a request to an OpenID provider.
const providerTimeout = 10 * time.Second

// mailPurpose is the purpose of the key that encrypts queued e-mails.
const mailPurpose = "mail"

// newMailSender returns the configured e-mail sender. If no SMTP server is
// configured, e-mails are printed to standard error.
func (p *program) newMailSender() (mail.Sender, error) {
	c := p.cfg.SMTP
	if c.Address == "" {
		return mail.Print(p.stderr), nil
	}
	return mail.SMTP(mail.Settings{
		Address:  c.Address,
		From:     c.From,
		Username: c.Username,
		Password: c.Password,
		TLS:      c.TLS,
		Timeout:  smtpTimeout,
	})
}

const smtpTimeout = 30 * time.Second

// withReading calls do with the database, for commands that only read the
// installation.
func (p *program) withReading(do func(ctx context.Context, db *sqldb.DB) error) error {
	db, err := p.openForReading(p.ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	return do(p.ctx, db)
}

// withPeople calls do with the services for people, for admin commands, which
// may run while a server is running. A worker sends the e-mails that the
// command creates.
func (p *program) withPeople(do func(ctx context.Context, pp *people) error) error {
	db, err := p.openExisting(p.ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	keys, err := p.openKeys(p.ctx, db)
	if err != nil {
		return err
	}
	jobs, err := queue.Open(db, queue.Options{Now: time.Now})
	if err != nil {
		return err
	}
	p.cfg.FillAddresses(p.cfg.Listen)
	return do(p.ctx, p.openPeople(db, keys, jobs, func() {}))
}
