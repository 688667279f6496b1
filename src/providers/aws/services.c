/* SPDX-License-Identifier: Apache-2.0 */
/* services.c - the services of AWS that are called, and what their codes mean wherever no operation says otherwise. */
#include "providers/aws/call_private.h"

#define US "us-east-1" /* services that are there once, for all regions */

/* clang-format off */
const struct aws_service aws_services[AWS_SERVICE_COUNT] = {
	[AWS_ORGANIZATIONS]   = { "ORGANIZATIONS",     "organizations",  "organizations",  "AWSOrganizationsV20161128", AWS_JSON_1_1, US },
	[AWS_COST_EXPLORER]   = { "COST_EXPLORER",     "ce",             "ce",             "AWSInsightsIndexService",   AWS_JSON_1_1, US },
	[AWS_SSO_ADMIN]       = { "SSO_ADMIN",         "sso",            "sso",            "SWBExternalService",        AWS_JSON_1_1, NULL },
	[AWS_IDENTITY_STORE]  = { "IDENTITYSTORE",     "identitystore",  "identitystore",  "AWSIdentityStore",          AWS_JSON_1_1, NULL },
	[AWS_SECRETS_MANAGER] = { "SECRETS_MANAGER",   "secretsmanager", "secretsmanager", "secretsmanager",            AWS_JSON_1_1, NULL },
	[AWS_CODEBUILD]       = { "CODEBUILD",         "codebuild",      "codebuild",      "CodeBuild_20161006",        AWS_JSON_1_1, NULL },
	[AWS_SSM]             = { "SSM",               "ssm",            "ssm",            "AmazonSSM",                 AWS_JSON_1_1, NULL },
	[AWS_SQS]             = { "SQS",               "sqs",            "sqs",            "AmazonSQS",                 AWS_JSON_1_0, NULL },
	[AWS_EVENTBRIDGE]     = { "EVENTBRIDGE",       "events",         "events",         "AWSEvents",                 AWS_JSON_1_1, NULL },
	[AWS_ECS]             = { "ECS",               "ecs",            "ecs",            "AmazonEC2ContainerServiceV20141113", AWS_JSON_1_1, NULL },
	[AWS_COGNITO]         = { "COGNITO_IDENTITY_PROVIDER", "cognito-idp", "cognito-idp", "AWSCognitoIdentityProviderService", AWS_JSON_1_1, NULL },
	[AWS_LOGS]            = { "CLOUDWATCH_LOGS",   "logs",           "logs",           "Logs_20140328",             AWS_JSON_1_1, NULL },
	[AWS_TAGGING]         = { "RESOURCE_GROUPS_TAGGING_API", "tagging", "tagging",     "ResourceGroupsTaggingAPI_20170126", AWS_JSON_1_1, NULL },
	[AWS_STS]             = { "STS",               "sts",            "sts",            "2011-06-15",                AWS_QUERY, NULL },
	[AWS_SNS]             = { "SNS",               "sns",            "sns",            "2010-03-31",                AWS_QUERY, NULL },
	[AWS_LOAD_BALANCING]  = { "ELASTIC_LOAD_BALANCING_V2", "elasticloadbalancing", "elasticloadbalancing", "2015-12-01", AWS_QUERY, NULL },
	[AWS_SCHEDULER]       = { "SCHEDULER",         "scheduler",      "scheduler",      NULL,                        AWS_REST_JSON, NULL },
	[AWS_EFS]             = { "EFS",               "elasticfilesystem", "elasticfilesystem", NULL,                  AWS_REST_JSON, NULL },
	[AWS_SES]             = { "SESV2",             "email",          "ses",            NULL,                        AWS_REST_JSON, NULL },
	[AWS_DYNAMODB]        = { "DYNAMODB",          "dynamodb",       "dynamodb",       "DynamoDB_20120810",         AWS_JSON_1_0, NULL },
	[AWS_IAM]             = { "IAM",               "iam.amazonaws.com", "iam",         "2010-05-08",                AWS_QUERY, US },
};

const struct aws_error_row aws_common_errors[] = {
	{ "AccessDenied",                RC_DENIED },
	{ "AccessDeniedException",       RC_DENIED },
	{ "AuthFailure",                 RC_DENIED },
	{ "ExpiredToken",                RC_DENIED },
	{ "ExpiredTokenException",       RC_DENIED },
	{ "IncompleteSignature",         RC_DENIED },
	{ "InvalidClientTokenId",        RC_DENIED },
	{ "InvalidSignatureException",   RC_DENIED },
	{ "MissingAuthenticationToken",  RC_DENIED },
	{ "NotAuthorized",               RC_DENIED },
	{ "OptInRequired",               RC_DENIED },
	{ "RequestExpired",              RC_DENIED },
	{ "SignatureDoesNotMatch",       RC_DENIED },
	{ "UnauthorizedOperation",       RC_DENIED },
	{ "UnrecognizedClientException", RC_DENIED },
	{ "InvalidParameterException",   RC_INVALID },
	{ "InvalidParameterValue",       RC_INVALID },
	{ "SerializationException",      RC_INVALID },
	{ "ValidationError",             RC_INVALID },
	{ "ValidationException",         RC_INVALID },
	{ NULL, RC_OK },
};
/* clang-format on */

const char *const *aws_slow_codes(const struct aws_service *service)
{
	static const char *const costs[] = { "LimitExceededException", NULL };
	static const char *const organisation[] = { "ConcurrentModificationException", NULL };
	static const char *const access[] = { "ConflictException", NULL };

	if (service == &aws_services[AWS_COST_EXPLORER])
		return costs;
	if (service == &aws_services[AWS_ORGANIZATIONS])
		return organisation;
	return service == &aws_services[AWS_SSO_ADMIN] ? access : NULL;
}
