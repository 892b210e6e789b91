/** Rule is the method and the path of an operation, and how it is sent. */
export interface Rule {
    method: string;
    path: string;
    /** Whether repeating the request does no harm when it is unknown if the service has received it. */
    isSafe?: boolean;
    /** Whether the operation takes an idempotency key. */
    isKeyed?: boolean;
    /** Whether team_id selects the account that the call acts for. */
    hasAccount?: boolean;
    /** Whether the operation needs no credential. */
    isPublic?: boolean;
}
/** rules has every operation of the API. */
export declare const rules: {
    startDevice: {
        method: string;
        path: string;
        isSafe: true;
        isPublic: true;
    };
    pollDevice: {
        method: string;
        path: string;
        isSafe: true;
        isPublic: true;
    };
    pollDeviceByBody: {
        method: string;
        path: string;
        isPublic: true;
    };
    refreshToken: {
        method: string;
        path: string;
        isSafe: true;
        isPublic: true;
    };
    createWebToken: {
        method: string;
        path: string;
        isPublic: true;
    };
    endSession: {
        method: string;
        path: string;
        isSafe: true;
    };
    revokeDevice: {
        method: string;
        path: string;
        isSafe: true;
    };
    signOutEverywhere: {
        method: string;
        path: string;
        isSafe: true;
    };
    getMe: {
        method: string;
        path: string;
        isSafe: true;
    };
    deleteMe: {
        method: string;
        path: string;
        isSafe: true;
    };
    exportMe: {
        method: string;
        path: string;
        isSafe: true;
    };
    claimTopUp: {
        method: string;
        path: string;
    };
    listLedger: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    listDevices: {
        method: string;
        path: string;
        isSafe: true;
    };
    listAccessTokens: {
        method: string;
        path: string;
        isSafe: true;
    };
    createAccessToken: {
        method: string;
        path: string;
    };
    deleteAccessToken: {
        method: string;
        path: string;
        isSafe: true;
    };
    regenerateAccessToken: {
        method: string;
        path: string;
    };
    listCompanyAccessTokens: {
        method: string;
        path: string;
        isSafe: true;
    };
    createCompanyAccessToken: {
        method: string;
        path: string;
    };
    deleteCompanyAccessToken: {
        method: string;
        path: string;
        isSafe: true;
    };
    regenerateCompanyAccessToken: {
        method: string;
        path: string;
    };
    listCompanies: {
        method: string;
        path: string;
        isSafe: true;
    };
    getCompany: {
        method: string;
        path: string;
        isSafe: true;
    };
    changeCompany: {
        method: string;
        path: string;
        isSafe: true;
    };
    listMembers: {
        method: string;
        path: string;
        isSafe: true;
    };
    setMember: {
        method: string;
        path: string;
        isSafe: true;
    };
    removeMember: {
        method: string;
        path: string;
        isSafe: true;
    };
    listRoles: {
        method: string;
        path: string;
        isSafe: true;
    };
    setRole: {
        method: string;
        path: string;
        isSafe: true;
    };
    deleteRole: {
        method: string;
        path: string;
        isSafe: true;
    };
    listDomains: {
        method: string;
        path: string;
        isSafe: true;
    };
    addDomain: {
        method: string;
        path: string;
    };
    removeDomain: {
        method: string;
        path: string;
        isSafe: true;
    };
    verifyDomain: {
        method: string;
        path: string;
        isSafe: true;
    };
    listAudit: {
        method: string;
        path: string;
        isSafe: true;
    };
    getScimToken: {
        method: string;
        path: string;
        isSafe: true;
    };
    createScimToken: {
        method: string;
        path: string;
    };
    deleteScimToken: {
        method: string;
        path: string;
        isSafe: true;
    };
    listTeams: {
        method: string;
        path: string;
        isSafe: true;
    };
    createTeam: {
        method: string;
        path: string;
    };
    getTeam: {
        method: string;
        path: string;
        isSafe: true;
    };
    renameTeam: {
        method: string;
        path: string;
        isSafe: true;
    };
    removeTeam: {
        method: string;
        path: string;
        isSafe: true;
    };
    getBudget: {
        method: string;
        path: string;
        isSafe: true;
    };
    setBudget: {
        method: string;
        path: string;
        isSafe: true;
    };
    deleteBudget: {
        method: string;
        path: string;
        isSafe: true;
    };
    listTeamMembers: {
        method: string;
        path: string;
        isSafe: true;
    };
    setTeamMember: {
        method: string;
        path: string;
        isSafe: true;
    };
    removeTeamMember: {
        method: string;
        path: string;
        isSafe: true;
    };
    listTeamRoles: {
        method: string;
        path: string;
        isSafe: true;
    };
    setTeamRole: {
        method: string;
        path: string;
        isSafe: true;
    };
    deleteTeamRole: {
        method: string;
        path: string;
        isSafe: true;
    };
    listInvitations: {
        method: string;
        path: string;
        isSafe: true;
    };
    createInvitation: {
        method: string;
        path: string;
    };
    listMyInvitations: {
        method: string;
        path: string;
        isSafe: true;
    };
    acceptInvitation: {
        method: string;
        path: string;
    };
    revokeInvitation: {
        method: string;
        path: string;
        isSafe: true;
    };
    acceptMyInvitation: {
        method: string;
        path: string;
    };
    listTools: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    getTool: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    listToolTags: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    listKits: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    createGeneration: {
        method: string;
        path: string;
        isSafe: true;
        isKeyed: true;
        hasAccount: true;
    };
    previewCost: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    getGeneration: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    cancelGeneration: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    streamGeneration: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    listGenerations: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    listWebhookAttempts: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    redeliverWebhook: {
        method: string;
        path: string;
        hasAccount: true;
    };
    listWebhookDeliveries: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    getWebhookSecret: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    rotateWebhookSecret: {
        method: string;
        path: string;
        hasAccount: true;
    };
    createUpload: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    listUploads: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    getUpload: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    deleteUpload: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    describeResumableUploads: {
        method: string;
        path: string;
        isPublic: true;
    };
    createResumableUpload: {
        method: string;
        path: string;
        isSafe: true;
        isKeyed: true;
        hasAccount: true;
    };
    getResumableUpload: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    appendResumableUpload: {
        method: string;
        path: string;
        hasAccount: true;
    };
    deleteResumableUpload: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    listLibrary: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    listLibraryMarks: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    getLibraryItem: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    deleteLibraryItem: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    restoreLibraryItem: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    addFavorite: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    removeFavorite: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    listFlows: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    createFlow: {
        method: string;
        path: string;
        hasAccount: true;
    };
    checkFlow: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    draftFlow: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    getFlow: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    changeFlow: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    deleteFlow: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    listFlowVersions: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    listBoards: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    createBoard: {
        method: string;
        path: string;
        hasAccount: true;
    };
    getBoard: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    renameBoard: {
        method: string;
        path: string;
        hasAccount: true;
    };
    deleteBoard: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    restoreBoard: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    addNode: {
        method: string;
        path: string;
        hasAccount: true;
    };
    changeNodes: {
        method: string;
        path: string;
        hasAccount: true;
    };
    changeNode: {
        method: string;
        path: string;
        hasAccount: true;
    };
    deleteNode: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    streamBoard: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    setPresence: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    streamEvents: {
        method: string;
        path: string;
        isSafe: true;
        hasAccount: true;
    };
    reportUsage: {
        method: string;
        path: string;
        isSafe: true;
    };
    reportRuns: {
        method: string;
        path: string;
        isSafe: true;
    };
    getOperatorStatus: {
        method: string;
        path: string;
        isSafe: true;
    };
    listOperatorRuns: {
        method: string;
        path: string;
        isSafe: true;
    };
    cancelOperatorRun: {
        method: string;
        path: string;
        isSafe: true;
    };
    listOperatorPeople: {
        method: string;
        path: string;
        isSafe: true;
    };
    listOperatorCompanies: {
        method: string;
        path: string;
        isSafe: true;
    };
    createOperatorGrant: {
        method: string;
        path: string;
        isSafe: true;
        isKeyed: true;
    };
    listOperatorSettings: {
        method: string;
        path: string;
        isSafe: true;
    };
    getOpenAPI: {
        method: string;
        path: string;
        isSafe: true;
        isPublic: true;
    };
};
