<?php
// SPDX-License-Identifier: Apache-2.0
// signout.php - ends the sessions of one person, LEASEHOLD_PERSON. Who was never there has none.

require __DIR__ . '/begin.php';
require_once ABSPATH . 'wp-load.php';

$user = get_user_by('email', (string) getenv('LEASEHOLD_PERSON'));
if ($user) {
    WP_Session_Tokens::get_instance($user->ID)->destroy_all();
}
echo json_encode(['done' => true, 'known' => (bool) $user]), "\n";
