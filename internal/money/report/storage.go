package report

// TeamStorage is the storage that the files of a team currently use.
type TeamStorage struct {
	TeamID, Name string
	Used         int64  // in bytes
	Limit        *int64 // limit of this team in bytes; nil if the general limit applies
}

// maxStorageTeams is the maximum number of teams that Storage returns.
const maxStorageTeams = 1000
