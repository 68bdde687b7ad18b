"""Structured codes and types of the providers, from their own error documentation.

Written squashed (lower case, letters and digits only), so that `RATE_LIMIT_EXCEEDED`, `RateLimitExceeded` and
`rate_limit_exceeded` are one. Two kinds: *telling* codes name one condition and beat prose (OURS-2), *vague*
ones (`invalid_request_error`, `rate_limit_error`, `api_error`) only name a drawer, and prose that says more
wins.
"""

from functools import lru_cache

_TELLING_BILLING = """
insufficientquota insufficientbalance insufficientbalanceerror insufficientcredits
insufficientcredit insufficientfunds insufficientuserquota insufficientaccountbalance
billinghardlimitreached billingnotactive billingerror billingdisabled paymentrequired
paymentrequirederror accountoverdueerror accountoverdue arrearage prepaidbilloverdue
postpaidbilloverdue allocationquotafreetieronly creditsexhausted creditexhausted
creditbalanceexhausted outofcredits outofcredit outofusage usagecreditsexhausted
noactivesubscription invalidsubscription subscriptionexpired subscriptionrequired
invalidpaymentinstrument balanceinsufficient exceededcurrentquotaerror nocredits creditlimitreached
billinglimitreached commoditynotpurchased insufficientcreditserror prepaymentrequired walletempty
walletinsufficient payasyougorequired quotanotenough preconsumetokenquotafailed accountarrears
operationdeniedservicesuspended
"""
_TELLING_PERMANENT = """
accountdeactivated accountsuspended accountdisabled accountterminated accountbanned userbanned
usersuspended deactivatedworkspace workspacedeactivated organizationdisabled organizationdeactivated
organizationsuspended apikeyrevoked apikeydeleted apikeydeactivated apikeydisabled keyrevoked
keydisabled tokenrevoked refreshtokenreused refreshtokeninvalidated invalidgrant consumersuspended
accountlocked projectarchived tokeninvalidated accountclosed apikeyleaked accountblocked
"""
_TELLING_AUTH = """
invalidapikey invalidapikeyerror incorrectapikey apikeyinvalid apikeynotfound missingapikey noapikey
apikeyexpired invalidtoken tokenexpired expiredtoken invalidauthentication
invalidauthenticationerror incorrectapikeyerror unrecognizedclientexception invalidclienttokenid
invalidsignatureexception expiredtokenexception signaturedoesnotmatch missingauthenticationtoken
missingauthenticationtokenexception invalidcredentials badcredentials accesstokenexpired
accesstokenscopeinsufficient selectedauthprofileunavailable unsupportedcountryregionterritory
invalidaccesstoken authenticationfailed autherror notauthenticated missingscope insufficientscope
unauthorizedclientapplication invalidapitoken userlocationinvalid accessdeniedunpurchased
workspaceaccessdenied modelaccessdenied apikeyserviceblocked apikeyhttpreferrerblocked
apikeyipaddressblocked servicedisabled authorizationerror invalidapikeyformat
"""
_TELLING_MODEL = """
modelnotfound modelnotfounderror unknownmodel modelnotsupported modelnotexist modeldoesnotexist
nosuchmodel deploymentnotfound modeldecommissioned modeldeprecated modelretired modelnotavailable
invalidmodel invalidmodelerror invalidmodelname modelisdeactivated modeldeactivated
invalidendpointormodelnotfound modeldelisted modelremoved invalidmodelid unsupportedmodel
modelnotserved modelnotdeployed modelnotfoundexception modelunavailableforapi
"""
_TELLING_OVERFLOW = """
contextlengthexceeded contextlengtherror contextwindowexceeded contextwindowexceedederror
exceedcontextsizeerror modelcontextwindowexceeded stringabovemaxlength tokenstoolong inputtoolong
prompttoolong contexttoolong contextlengthexceedederror inputlengthexceeded
maximumcontextlengthexceeded requesttoolarge contextoverflow requesttoolargeerror payloadtoolarge
inputtokenlimitexceeded prompttoolarge requestentitytoolarge tokenlimitexceeded
maxcontextlengthexceeded badrequesttoolarge contextsizeexceeded tokenslimitexceeded
"""
_TELLING_RATE = """
ratelimitexceeded ratelimitreached ratelimited ratelimit ratelimitreachederror
requestratelimitexceeded toomanyrequests toomanyrequestsexception toomanyconcurrentrequests
throttlingexception throttling throttled throttledexception throttlingratequota
throttlingallocationquota throttlingburstrate throttlingburstratequota limitrequests limitburstrate
userratelimitexceeded quotaexceeded quotaexceedederror concurrencylimitexceeded
servicequotaexceededexception requestlimitexceeded requestlimitexceedederror tokenquotareached
consumptionlimitreached modelcooldown apirequestslimitexceeded requestburstthrottled
dailylimitexceeded ratelimitexceedederror tokenspermitlimitexceeded tokenratelimitexceeded
secondaryratelimit perminutelimitexceeded tokensperminutelimitexceeded
requestsperminutelimitexceeded concurrentrequestslimit tpmlimitexceeded rpmlimitexceeded
modelaccountrpmratelimitexceeded modelaccounttpmratelimitexceeded accountratelimitexceeded
endpointrpmexceeded endpointtpmexceeded modelaccountiprmratelimitexceeded
inputtokenspermitlimitexceeded
"""
_TELLING_WINDOW = """
usagelimitreached usagelimitexceeded usagenotincluded workspaceownerusagelimitreached
workspacememberusagelimitreached weeklylimitreached monthlylimitreached planlimitreached
"""
_TELLING_OVERLOADED = """
overloadederror overloaded serveroverloaded engineoverloadederror engineoverloaded
modelnotreadyexception modelnotready capacityexceeded servicetiercapacityexceeded slowdown
serveroverloadederror modeloverloaded insufficientcapacity nocapacity capacityunavailable
servicebusy serverbusy systembusy queuefull modelatcapacity servicecapacityexceeded
temporarilyoverloaded
"""
_TELLING_FORMAT = """
unknownparameter unsupportedparameter unsupportedvalue invalidvalue missingrequiredparameter
integerbelowminvalue integerabovemaxvalue decimalabovemaxvalue invalidtype invalidfunctionparameters
invalidimageformat invalidimageurl imageparseerror invalidbase64 invalidjson
unprocessableentityerror validationerror invalidparametererror invalidparameter
invalidparametervalue emptyinput badrequestemptyinput failedgeneration toolusefailed
jsonvalidatefailed unsupportedapiformodel unsupportedoperation missingparameter
stringpatternmismatch arrayabovemaxlength badjson literalerror missing
"""
_REFUSAL = """
contentfilter contentfiltererror contentfiltered responsibleaipolicyviolation contentpolicyviolation
datainspectionfailed contentpolicyviolationerror moderationblocked contentmoderation
sensitivewordsdetected promptblocked prohibitedcontent safety blocklist contentblocked
sensitivecheckerror sensitivecontentdetected inputtextsensitivecontentdetected
outputtextsensitivecontentdetected policyviolation usagepolicyviolation contentsafety
guardrailintervened refusal biopolicy imagesafety
"""
_CYBER = "cyberpolicy cyberpolicyviolation"
_MISALIGNMENT = "misalignmentpolicyviolation"
_NETWORK = """
etimedout esockettimedout econnreset econnaborted econnrefused enetunreach enetdown ehostunreach
ehostdown enetreset epipe eaiagain enotfound errstreamprematureclose errhttp2streamerror
underrsocket underraborted underrconnecttimeout underrheaderstimeout underrbodytimeout underrclosed
errsocketclosed connectionerror apiconnectionerror apitimeouterror connecterror readerror writeerror
remoteprotocolerror connecttimeout readtimeout writetimeout pooltimeout timeouterror timeout
requesttimeout requesttimeouterror streamreaderror networkerror closederror protocolerror
localprotocolerror proxyerror connectionreset connectionclosed websocketclosed tlshandshake
malformedresponse websocketconnectionlimitreached responsestreamdisconnected
responsestreamconnectionfailed httpconnectionfailed incompleteread connectionreseterror
connectionabortederror connectionrefusederror brokenpipeerror internalerrortimeout
"""
_TLS = """
certhasexpired depthzeroselfsignedcert selfsignedcertinchain unabletoverifyleafsignature
unabletogetissuercert unabletogetissuercertlocally errtlscertaltnameinvalid certificateverifyfailed
sslcertverificationerror certuntrusted certinvalid certrevoked certnotyetvalid
errcertauthorityinvalid errcertdateinvalid certaltnameinvalid certificateerror
"""
_TIMEOUTS = """
deadlineexceeded modeltimeoutexception gatewaytimeout gatewaytimeouterror operationtimeout
upstreamtimeout requesttimedout inferencetimeout timeoutexception
"""

# --- vague ---
_VAGUE_AUTH = """
authenticationerror permissionerror permissiondenied permissiondeniederror unauthenticated
unauthorized accessdeniedexception accessdenied forbidden unauthorizederror unauthorizedexception
accessterminatederror
"""
_VAGUE_RATE = "ratelimiterror resourceexhausted ratelimitexception ratelimiterrors tokens requests"
_VAGUE_FORMAT = """
invalidrequesterror invalidrequest invalidargument badrequest badrequesterror validationexception
failedprecondition unprocessableentity outofrange invalidrequestexception badrequestexception
"""
_VAGUE_MODEL = "notfounderror notfound resourcenotfoundexception resourcenotfound resourcedoesnotexist"
_VAGUE_OVERLOADED = """
unavailable unavailableerror serviceunavailable serviceunavailableerror serviceunavailableexception
temporarilyunavailable
"""
_VAGUE_SERVER = """
servererror upstreamerror internalservererror internalservererrorexception internalserverexception
internalfailure modelerrorexception internalerror internalerroralgo modelservingerror llmservererror
internal internalserviceerror
"""
_VAGUE_TIMEOUT = "apierror"

TOKENS: dict[str, str] = {
    "billing": _TELLING_BILLING,
    "permanent": _TELLING_PERMANENT,
    "auth": _TELLING_AUTH,
    "model": _TELLING_MODEL,
    "overflow": _TELLING_OVERFLOW,
    "rate": _TELLING_RATE,
    "window": _TELLING_WINDOW,
    "overloaded": _TELLING_OVERLOADED,
    "format": _TELLING_FORMAT,
    "refusal": _REFUSAL,
    "cyber": _CYBER,
    "misalignment": _MISALIGNMENT,
    "network": _NETWORK,
    "tls": _TLS,
    "timeout": _TIMEOUTS,
    "vague-auth": _VAGUE_AUTH,
    "vague-rate": _VAGUE_RATE,
    "vague-format": _VAGUE_FORMAT,
    "vague-model": _VAGUE_MODEL,
    "vague-overloaded": _VAGUE_OVERLOADED,
    "vague-server": _VAGUE_SERVER,
    "vague-api": _VAGUE_TIMEOUT,
}
"""Name of a set -> its codes, separated by white space."""

FRAGMENTS = (
    ("ratelimit", "ratelimited"), ("throttl", "throttled"), ("toomanyrequest", "toomanyrequests"),
    ("quotaexceed", "quotaexceeded"), ("quotaexhaust", "quotaexceeded"), ("overload", "overloaded"),
    ("insufficientbalance", "insufficientbalance"), ("insufficientcredit", "insufficientcredits"),
    ("insufficientfund", "insufficientfunds"), ("insufficientquota", "insufficientquota"),
    ("notenoughbalance", "insufficientbalance"), ("notenoughcredit", "insufficientcredits"),
    ("outofcredit", "outofcredits"), ("budgetexceeded", "creditlimitreached"),
    ("paymentrequired", "paymentrequired"), ("overdue", "accountoverdue"), ("arrear", "arrearage"),
    ("contextlength", "contextlengthexceeded"), ("contextwindow", "contextwindowexceeded"),
    ("contextsize", "contextsizeexceeded"), ("modelnotfound", "modelnotfound"),
    ("modelnotexist", "modelnotexist"), ("modelnotsupport", "modelnotsupported"),
    ("decommission", "modeldecommissioned"), ("contentfilter", "contentfilter"),
    ("contentpolicy", "contentpolicyviolation"), ("sensitivecontent", "sensitivecontentdetected"),
    ("invalidapikey", "invalidapikey"), ("apikeyinvalid", "invalidapikey"),
    ("apikeyrevoked", "apikeyrevoked"), ("deactivated", "accountdeactivated"),
    ("suspended", "accountsuspended"), ("capacityexceeded", "capacityexceeded"),
    ("nocapacity", "nocapacity"),
)  # fmt: skip
"""Part of a code that no table knows -> the known code that it is read as, so that
`user_weekly_rate_limited` is a throttle."""

_KNOWN = frozenset(code for codes in TOKENS.values() for code in codes.split())


@lru_cache(maxsize=4096)
def family_of_code(code: str) -> str:
    """The known code that an unknown squashed one is read as, by what it contains; "" for none."""
    if code in _KNOWN or len(code) > 80:
        return ""
    return next((known for part, known in FRAGMENTS if part in code), "")
